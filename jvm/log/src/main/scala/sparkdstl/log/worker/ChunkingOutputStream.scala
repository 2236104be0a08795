// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import java.io.{ByteArrayOutputStream, OutputStream}

/** Passes written bytes to `onChunk`, in chunks of at most `chunkSize` bytes. */
final class ChunkingOutputStream(chunkSize: Int, onChunk: Array[Byte] => Unit) extends OutputStream {
  private val buffer = new ByteArrayOutputStream(1024)
  private var taken = 0L

  def size: Long = taken

  override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    taken += length
    var done = 0
    while (done < length) {
      val count = math.min(length - done, chunkSize - buffer.size())
      buffer.write(bytes, offset + done, count)
      done += count
      if (buffer.size() >= chunkSize) onChunk(takeRest())
    }
  }

  /** The bytes after the last chunk, in a new array. */
  def takeRest(): Array[Byte] = {
    val rest = buffer.toByteArray
    buffer.reset()
    rest
  }
}
