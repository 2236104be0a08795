// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.{ByteArrayOutputStream, OutputStream}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.CheckpointFiles
import org.apache.spark.sql.execution.streaming.state.dstl.worker.EndingStream

/** A file that is written as one object when it is closed, with the retries and hedges of all single writes. */
private[dstl] object PublishedFile {

  /** @param large opens the stream of a file that is larger than the limit */
  def apply(publish: Array[Byte] => Unit, large: () => CancellableFSDataOutputStream): CancellableFSDataOutputStream = {
    val sink = new SpillingOutputStream(CheckpointFiles.Limit, large)
    new EndingStream(sink)(sink.large.fold(publish(sink.content))(_.close()))(sink.large.foreach(_.cancel()))
  }
}

/** Holds up to `limit` bytes in memory; beyond that it opens a stream and writes there. */
private final class SpillingOutputStream(limit: Int, open: () => CancellableFSDataOutputStream) extends OutputStream {
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
