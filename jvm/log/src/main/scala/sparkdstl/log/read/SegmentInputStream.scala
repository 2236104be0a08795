// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.io.EOFException

import org.apache.hadoop.fs.FSInputStream

/**
 * A segment as a stream for Hadoop's `FSDataInputStream`. `loadPart` returns the verified bytes of the part with an index; one
 * part is in memory at a time. Not thread-safe.
 */
final class SegmentInputStream(lengths: IndexedSeq[Int], loadPart: Int => Array[Byte]) extends FSInputStream {
  private val starts: IndexedSeq[Long] = lengths.scanLeft(0L)(_ + _)
  private var position = 0L
  private var loadedIndex = -1
  private var loaded: Array[Byte] = Array.emptyByteArray

  def length: Long = starts.last

  override def read(): Int = {
    val one = new Array[Byte](1)
    if (read(one, 0, 1) < 0) -1 else one(0) & 0xff
  }

  override def read(buffer: Array[Byte], offset: Int, wanted: Int): Int = {
    java.util.Objects.checkFromIndexSize(offset, wanted, buffer.length)
    if (wanted == 0) 0
    else if (position >= length) -1
    else {
      val index = starts.lastIndexWhere(_ <= position, lengths.size - 1)
      if (index != loadedIndex) {
        loaded = loadPart(index)
        loadedIndex = index
      }
      val within = (position - starts(index)).toInt
      val count = math.min(wanted, loaded.length - within)
      System.arraycopy(loaded, within, buffer, offset, count)
      position += count
      count
    }
  }

  override def available(): Int = math.min(length - position, Int.MaxValue.toLong).toInt
  override def getPos: Long = position
  override def seek(target: Long): Unit = {
    if (target < 0 || target > length) throw new EOFException(s"position $target in a segment of $length bytes")
    position = target
  }

  override def seekToNewSource(target: Long): Boolean = false
}

object SegmentInputStream {

  def of(bytes: Array[Byte]): SegmentInputStream = new SegmentInputStream(Vector(bytes.length), _ => bytes)
}
