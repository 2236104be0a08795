// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.lang.reflect.{InvocationTargetException, Method, Proxy}
import java.util.concurrent.ConcurrentHashMap

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The values of a change record that Spark's reader of changes leaves out: it decodes the first, and since Spark 4.1 a record of a
 * list has all that were put or appended at once. For one thread.
 *
 * @param provider of the reader, with the column family of the table
 * @param table    whose keys have several values
 */
private[tools] final class EveryValue(provider: StateStoreProvider, table: StoredTable) {
  import EveryValue._
  // The value of the last record.
  private var encoded = Array.emptyByteArray

  private val decoder = {
    val all = encoders.get(provider).asInstanceOf[ConcurrentHashMap[String, Encoders]]
    val before = all.get(table.familyName)
    val decoder = before._2
    val noting = Proxy.newProxyInstance(
      getClass.getClassLoader,
      Array(classOf[RocksDBValueStateEncoder]),
      (_: Any, method: Method, arguments: Array[AnyRef]) => {
        if (method.getName == "decodeValue") encoded = arguments.head.asInstanceOf[Array[Byte]]
        try method.invoke(decoder, arguments: _*)
        catch { case error: InvocationTargetException => throw error.getCause }
      }
    )
    all.put(table.familyName, before.copy(_2 = noting.asInstanceOf[RocksDBValueStateEncoder]))
    decoder
  }

  /** The values after the first of the record that the reader has returned last, which is no deletion. */
  def others: Iterator[UnsafeRow] = decoder.decodeValues(encoded).drop(1)
}

private[tools] object EveryValue {
  private type Encoders = (RocksDBKeyStateEncoder, RocksDBValueStateEncoder, Short)

  /** The change type of the other values of a record. */
  val Append: UTF8String = UTF8String.fromString(RecordType.getRecordTypeAsString(RecordType.MERGE_RECORD))

  // The decoders of a provider by column family; Spark has no method that returns one.
  private val encoders = FieldUtils.getDeclaredField(
    classOf[RocksDBStateStoreProvider],
    s"${classOf[RocksDBStateStoreProvider].getName.replace('.', '$')}$$$$keyValueEncoderMap",
    true
  )
}
