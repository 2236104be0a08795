// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.apache.hadoop.fs.{FSDataInputStream, FSInputStream}

import sparkdstl.testing.DirectWriteFileSystem.pause

/**
 * A network line: the content of all senders moves at a steady rate, one piece after another. The caller provides the
 * moments of `System.nanoTime`.
 *
 * @param bytesPerSecond 0 for no limit
 * @param now            the moment from which it is free
 */
final class Line(bytesPerSecond: Long, now: Long) {
  // Guarded by this.
  private var free = now

  /** Occupies the line for so many bytes; returns the moment of the last one's arrival. */
  def carry(bytes: Long, now: Long): Long =
    if (bytesPerSecond <= 0) now
    else
      synchronized {
        // A late caller catches up by a few milliseconds, as with the buffers of a network.
        free = math.max(free, now - Line.BufferedNanos) + math.round(bytes * 1e9 / bytesPerSecond)
        free
      }
}

object Line {
  private[bench] val BufferedNanos = 5000000L

  /** Waits for a moment of `System.nanoTime`. */
  def await(nanos: Long): Unit = pause(math.round((nanos - System.nanoTime()) / 1e6))
}

/**
 * A stream whose content takes the time of the slowest of some lines.
 *
 * @param count called with the number of bytes of each read
 */
final class DelayedInputStream(stream: FSDataInputStream, lines: Seq[Line], count: Long => Unit)
    extends FSInputStream {
  // Of the reader's thread alone, like the stream.
  private var due = System.nanoTime()

  override def read(): Int = {
    val byte = stream.read()
    if (byte >= 0) moved(1): Unit
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
    try Line.await(due)
    finally stream.close()

  private def moved(bytes: Int): Int = {
    if (bytes > 0) {
      count(bytes.toLong)
      due = lines.map(_.carry(bytes.toLong, System.nanoTime())).foldLeft(due)(math.max)
      // No sleep is shorter than a millisecond.
      if (due - System.nanoTime() >= 1000000L) Line.await(due)
    }
    bytes
  }
}
