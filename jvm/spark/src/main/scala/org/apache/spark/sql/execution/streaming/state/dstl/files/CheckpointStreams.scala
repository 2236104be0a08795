package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.{ByteArrayOutputStream, OutputStream}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.worker.OpenSegment

/** Takes a changelog's bytes in chunks of bounded size. */
private[dstl] final class ChunkingOutputStream(chunkSize: Int, onChunk: Array[Byte] => Unit) extends OutputStream {
  private val buffer = new ByteArrayOutputStream(1024)
  private var taken = 0L

  /** Bytes so far. */
  def size: Long = taken

  override def write(byte: Int): Unit = {
    taken += 1
    buffer.write(byte)
    emitIfFull()
  }

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    taken += length
    var done = 0
    while (done < length) {
      val count = math.min(length - done, chunkSize - buffer.size())
      buffer.write(bytes, offset + done, count)
      done += count
      emitIfFull()
    }
  }

  /** What has not been handed out as a chunk, in a new array. */
  def takeRest(): Array[Byte] = {
    val rest = buffer.toByteArray
    buffer.reset()
    rest
  }

  private def emitIfFull(): Unit = if (buffer.size() >= chunkSize) onChunk(takeRest())
}

/**
 * The stream to which Spark writes a store's changelog. Closing it completes the segment; no file is created.
 *
 * Life cycle: open, then either closed or cancelled. Calls after the first of the two have no effect, because Spark closes the
 * compressing stream around this one after it has cancelled.
 */
private[dstl] final class ChangelogStream private (
    chunks: ChunkingOutputStream,
    segment: OpenSegment,
    ends: Long => Unit
) extends CancellableFSDataOutputStream(chunks) {

  private var ended = false

  override def close(): Unit = synchronized {
    if (!ended) {
      ended = true
      ends(chunks.size)
      segment.end(chunks.takeRest())
    }
  }

  override def cancel(): Unit = synchronized {
    if (!ended) {
      ended = true
      segment.abort()
    }
  }
}

private[dstl] object ChangelogStream {

  /**
   * Writing a chunk waits for memory to hold it.
   *
   * @param ends called with the length when the segment is complete
   */
  def apply(segment: OpenSegment, ends: Long => Unit): ChangelogStream =
    new ChangelogStream(new ChunkingOutputStream(segment.chunkSize, segment.add), segment, ends)
}

/**
 * A file that is written as one object when it is closed, with the retries and hedges of all single writes. Files larger
 * than `limit` bytes are handed to `large` instead.
 */
private[dstl] final class PublishedFileStream private (sink: SpillingOutputStream, publish: Array[Byte] => Unit)
    extends CancellableFSDataOutputStream(sink) {

  private var ended = false

  override def close(): Unit = synchronized {
    if (!ended) {
      ended = true
      sink.large match {
        case Some(stream) => stream.close()
        case None => publish(sink.content)
      }
    }
  }

  override def cancel(): Unit = synchronized {
    if (!ended) {
      ended = true
      sink.large.foreach(_.cancel())
    }
  }
}

private[dstl] object PublishedFileStream {

  /** Up to this size a file is held in memory and written by one request. */
  val Limit: Int = 32 * 1024 * 1024

  def apply(publish: Array[Byte] => Unit, large: () => CancellableFSDataOutputStream): PublishedFileStream =
    new PublishedFileStream(new SpillingOutputStream(Limit, large), publish)
}

/** Holds what is written in memory, until it is more than `limit` bytes: then it opens a stream and writes there. */
private[dstl] final class SpillingOutputStream(limit: Int, open: () => CancellableFSDataOutputStream)
    extends OutputStream {
  private val buffer = new ByteArrayOutputStream(1024)
  private var opened: Option[CancellableFSDataOutputStream] = None

  def content: Array[Byte] = buffer.toByteArray

  def large: Option[CancellableFSDataOutputStream] = opened

  override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    if (opened.isEmpty && buffer.size().toLong + length > limit) {
      val stream = open()
      opened = Some(stream)
      buffer.writeTo(stream)
      buffer.reset()
    }
    opened.getOrElse(buffer).write(bytes, offset, length)
  }
}
