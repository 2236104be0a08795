package sparkdstl.log.read

import java.io.{EOFException, InputStream}

import org.apache.hadoop.fs.{PositionedReadable, Seekable}

/**
 * A segment's bytes as a stream that Hadoop's `FSDataInputStream` can wrap. Holds one part at a time, so its memory is
 * bounded by the size of a part whatever the segment's size. Not thread-safe, as no Hadoop stream is.
 *
 * @param lengths  of the parts, in order
 * @param loadPart the verified bytes of the part with that index
 */
final class SegmentInputStream(lengths: IndexedSeq[Int], loadPart: Int => Array[Byte])
    extends InputStream with Seekable with PositionedReadable {

  private val starts: IndexedSeq[Long] = lengths.scanLeft(0L)(_ + _)
  private var position = 0L
  private var loadedIndex = -1
  private var loaded: Array[Byte] = Array.emptyByteArray

  /** Bytes in all. */
  def length: Long = starts.last

  override def read(): Int = {
    val one = new Array[Byte](1)
    if (read(one, 0, 1) < 0) -1 else one(0) & 0xff
  }

  override def read(buffer: Array[Byte], offset: Int, wanted: Int): Int = {
    val count = read(position, buffer, offset, wanted)
    if (count > 0) position += count
    count
  }

  override def available(): Int = math.min(length - position, Int.MaxValue.toLong).toInt

  override def skip(count: Long): Long = {
    val skipped = math.max(0L, math.min(count, length - position))
    position += skipped
    skipped
  }

  override def getPos: Long = position

  override def seek(target: Long): Unit = {
    if (target < 0 || target > length) throw new EOFException(s"position $target in a segment of $length bytes")
    position = target
  }

  override def seekToNewSource(target: Long): Boolean = false

  override def read(from: Long, buffer: Array[Byte], offset: Int, wanted: Int): Int = {
    java.util.Objects.checkFromIndexSize(offset, wanted, buffer.length)
    if (wanted == 0) 0
    else if (from >= length) -1
    else {
      val index = starts.lastIndexWhere(_ <= from, lengths.size - 1)
      load(index)
      val within = (from - starts(index)).toInt
      val count = math.min(wanted, loaded.length - within)
      System.arraycopy(loaded, within, buffer, offset, count)
      count
    }
  }

  override def readFully(from: Long, buffer: Array[Byte], offset: Int, wanted: Int): Unit = {
    var done = 0
    while (done < wanted) {
      val count = read(from + done, buffer, offset + done, wanted - done)
      if (count < 0) throw new EOFException(s"position ${from + wanted} in a segment of $length bytes")
      done += count
    }
  }

  override def readFully(from: Long, buffer: Array[Byte]): Unit = readFully(from, buffer, 0, buffer.length)

  private def load(index: Int): Unit =
    if (index != loadedIndex) {
      loaded = loadPart(index)
      loadedIndex = index
    }
}
