// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.io.{BufferedOutputStream, ByteArrayOutputStream}
import java.net.{InetAddress, Socket}
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets

import scala.util.Using

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector.{VectorSchemaRoot, VectorUnloader}
import org.apache.arrow.vector.ipc.{ArrowStreamWriter, WriteChannel}
import org.apache.arrow.vector.ipc.message.{IpcOption, MessageSerializer}
import org.apache.arrow.vector.types.pojo.Schema

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.execution.streaming.state.dstl.tools.InParallel.Part
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils

/** What Arrow needs for rows. */
private[tools] object ArrowRows {
  def newAllocator(): BufferAllocator = ArrowUtils.rootAllocator.newChildAllocator("dstl", 0, Long.MaxValue)

  def schema(of: StructType): Schema =
    ArrowUtils.toArrowSchema(of, "UTC", errorOnDuplicatedFieldNames = false, largeVarTypes = false)
}

/** Sends rows to a port of this machine, as an Arrow stream behind the secret that identifies the sender. */
private[tools] object ArrowSender {
  private val RowsInBatch = 8192
  private val BytesInBatch = 2L * 1024 * 1024
  private val Buffer = 256 * 1024
  // The rows between two checks of a batch's size: a check takes as long as writing some rows.
  private val RowsBetweenLooks = 256

  /**
   * Sends the rows that each part passes on, in the order of the parts, then ends the stream. Several parts are asked at once, each
   * in a thread. A stream without an end is incomplete.
   */
  def send(port: Int, secret: String, schema: StructType)(parts: Seq[Part[InternalRow]]): Unit =
    Using.Manager { use =>
      val socket = use(new Socket(InetAddress.getLoopbackAddress, port))
      val out = use(new BufferedOutputStream(socket.getOutputStream, Buffer))
      out.write(secret.getBytes(StandardCharsets.US_ASCII))
      val allocator = use(ArrowRows.newAllocator())
      val arrow = ArrowRows.schema(schema)
      val channel = new WriteChannel(Channels.newChannel(out))
      MessageSerializer.serialize(channel, arrow): Unit
      out.flush()
      InParallel.inOrder(parts.map(batchesOf(_, arrow, allocator)))(_ => ())(out.write)
      ArrowStreamWriter.writeEndOfStream(channel, IpcOption.DEFAULT)
      out.flush()
    }.get

  /** The rows of a part in encoded batches: it is encoded in its thread. */
  private def batchesOf(part: Part[InternalRow], arrow: Schema, allocator: BufferAllocator): Part[Array[Byte]] = use =>
    Using.resource(VectorSchemaRoot.create(arrow, allocator)) { root =>
      val rows = ArrowWriter.create(root)
      val batches = new VectorUnloader(root)
      var count = 0
      def flush(): Unit = {
        rows.finish()
        val encoded = new ByteArrayOutputStream
        Using.resource(batches.getRecordBatch) { batch =>
          MessageSerializer.serialize(new WriteChannel(Channels.newChannel(encoded)), batch): Unit
        }
        rows.reset()
        count = 0
        use(encoded.toByteArray)
      }
      part { row =>
        rows.write(row)
        count += 1
        if (count == RowsInBatch || count % RowsBetweenLooks == 0 && rows.sizeInBytes() > BytesInBatch) flush()
      }
      if (count > 0) flush()
    }
}
