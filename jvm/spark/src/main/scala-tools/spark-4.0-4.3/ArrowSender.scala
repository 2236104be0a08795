// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.io.BufferedOutputStream
import java.net.{InetAddress, Socket}
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets

import scala.util.Using

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.ArrowStreamWriter

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils

/** Sends rows to a port of this machine, as an Arrow stream behind the secret that identifies the sender. */
private[tools] object ArrowSender {
  private val RowsInBatch = 8192
  private val BytesInBatch = 8L * 1024 * 1024
  private val Buffer = 256 * 1024
  // The rows between two checks of a batch's size: a check takes as long as writing some rows.
  private val RowsBetweenLooks = 256

  /** Sends what `each` passes to it, then ends the stream. A stream without an end is incomplete. */
  def send(port: Int, secret: String, schema: StructType)(each: (InternalRow => Unit) => Unit): Unit =
    Using.Manager { use =>
      val socket = use(new Socket(InetAddress.getLoopbackAddress, port))
      val out = use(new BufferedOutputStream(socket.getOutputStream, Buffer))
      out.write(secret.getBytes(StandardCharsets.US_ASCII))
      val allocator = use(ArrowUtils.rootAllocator.newChildAllocator("dstl", 0, Long.MaxValue))
      val arrow = ArrowUtils.toArrowSchema(schema, "UTC", errorOnDuplicatedFieldNames = false, largeVarTypes = false)
      val root = use(VectorSchemaRoot.create(arrow, allocator))
      val stream = use(new ArrowStreamWriter(root, null, Channels.newChannel(out)))
      val rows = ArrowWriter.create(root)
      var count = 0
      def flush(): Unit = {
        rows.finish()
        stream.writeBatch()
        rows.reset()
        count = 0
      }
      stream.start()
      out.flush()
      each { row =>
        rows.write(row)
        count += 1
        if (count == RowsInBatch || count % RowsBetweenLooks == 0 && rows.sizeInBytes() > BytesInBatch) flush()
      }
      if (count > 0) flush()
      stream.end()
      out.flush()
    }.get
}
