// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.apache.hadoop.fs.{FSDataInputStream, FSInputStream}

/**
 * Delays content by the slowest of its lines.
 *
 * @param count      called with the number of bytes of each read
 * @param clock      `System.nanoTime`
 * @param pauseUntil waits for a moment of that clock
 */
final class Transfer(lines: Seq[Line], count: Long => Unit, clock: () => Long, pauseUntil: Long => Unit) {
  // Of the reader's thread alone, like the stream.
  private var due = clock()

  /** Accounts for bytes that were read. Waits once a millisecond is due: no sleep is shorter. */
  def moved(bytes: Long): Unit = {
    count(bytes)
    due = lines.map(_.carry(bytes, clock())).foldLeft(due)(math.max)
    if (due - clock() >= Transfer.ShortestNanos) pauseUntil(due)
  }

  /** Waits for the rest. */
  def end(): Unit = if (due > clock()) pauseUntil(due)
}

object Transfer {
  private[bench] val ShortestNanos = 1000000L
}

/** A stream whose reads a transfer delays. */
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
