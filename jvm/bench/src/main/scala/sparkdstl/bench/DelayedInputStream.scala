package sparkdstl.bench

import org.apache.hadoop.fs.{FSDataInputStream, FSInputStream}

/**
 * Lets content take its time on the lines that it comes through.
 *
 * @param count      called with bytes as they are read
 * @param clock      `System.nanoTime`
 * @param pauseUntil waits until a moment of that clock
 */
final class Transfer(lines: Seq[Line], count: Long => Unit, clock: () => Long, pauseUntil: Long => Unit) {
  // Of the reader's thread alone, as a stream is.
  private var due = clock()

  /** Bytes have been read. Waits once there is a millisecond to wait for, since no sleep is shorter. */
  def moved(bytes: Long): Unit = {
    count(bytes)
    due = lines.map(_.carry(bytes, clock())).foldLeft(due)(math.max)
    if (due - clock() >= Transfer.ShortestNanos) pauseUntil(due)
  }

  /** Nothing more is read: what is left to wait for is waited for. */
  def end(): Unit = if (due > clock()) pauseUntil(due)
}

object Transfer {
  private[bench] val ShortestNanos = 1000000L
}

/** Reads from a stream, and tells a transfer how much. */
final class DelayedInputStream(stream: FSDataInputStream, transfer: Transfer) extends FSInputStream {

  override def read(): Int = {
    val byte = stream.read()
    if (byte >= 0) transfer.moved(1)
    byte
  }

  override def read(buffer: Array[Byte], offset: Int, length: Int): Int =
    moved(stream.read(buffer, offset, length))

  override def read(position: Long, buffer: Array[Byte], offset: Int, length: Int): Int =
    moved(stream.read(position, buffer, offset, length))

  override def seek(position: Long): Unit = stream.seek(position)

  override def getPos: Long = stream.getPos

  override def seekToNewSource(position: Long): Boolean = stream.seekToNewSource(position)

  override def available(): Int = stream.available()

  override def close(): Unit =
    try transfer.end()
    finally stream.close()

  private def moved(bytes: Int): Int = {
    if (bytes > 0) transfer.moved(bytes.toLong)
    bytes
  }
}
