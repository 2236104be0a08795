package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** A store that is `underlying` in everything but its metrics, to which `more` are added once it has committed. */
private[dstl] final class MeasuredStateStore(val underlying: StateStore, more: () => Map[StateStoreCustomMetric, Long])
    extends StateStore {

  override def metrics: StateStoreMetrics = {
    val own = underlying.metrics
    if (underlying.hasCommitted) own.copy(customMetrics = own.customMetrics ++ more()) else own
  }

  override def id: StateStoreId = underlying.id

  override def version: Long = underlying.version

  override def get(key: UnsafeRow, colFamilyName: String): UnsafeRow = underlying.get(key, colFamilyName)

  override def multiGet(keys: Array[UnsafeRow], colFamilyName: String): Iterator[UnsafeRow] =
    underlying.multiGet(keys, colFamilyName)

  override def keyExists(key: UnsafeRow, colFamilyName: String): Boolean = underlying.keyExists(key, colFamilyName)

  override def valuesIterator(key: UnsafeRow, colFamilyName: String): Iterator[UnsafeRow] =
    underlying.valuesIterator(key, colFamilyName)

  override def prefixScan(prefixKey: UnsafeRow, colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
    underlying.prefixScan(prefixKey, colFamilyName)

  override def prefixScanWithMultiValues(
      prefixKey: UnsafeRow,
      colFamilyName: String
  ): StateStoreIterator[UnsafeRowPair] =
    underlying.prefixScanWithMultiValues(prefixKey, colFamilyName)

  override def rangeScan(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      colFamilyName: String
  ): StateStoreIterator[UnsafeRowPair] =
    underlying.rangeScan(startKey, endKey, colFamilyName)

  override def rangeScanWithMultiValues(
      startKey: Option[UnsafeRow],
      endKey: Option[UnsafeRow],
      colFamilyName: String
  ): StateStoreIterator[UnsafeRowPair] =
    underlying.rangeScanWithMultiValues(startKey, endKey, colFamilyName)

  override def iterator(colFamilyName: String): StateStoreIterator[UnsafeRowPair] = underlying.iterator(colFamilyName)

  override def iteratorWithMultiValues(colFamilyName: String): StateStoreIterator[UnsafeRowPair] =
    underlying.iteratorWithMultiValues(colFamilyName)

  override def allColumnFamilyNames: Set[String] = underlying.allColumnFamilyNames

  override def removeColFamilyIfExists(colFamilyName: String): Boolean =
    underlying.removeColFamilyIfExists(colFamilyName)

  override def createColFamilyIfAbsent(
      colFamilyName: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean
  ): Unit =
    underlying.createColFamilyIfAbsent(
      colFamilyName,
      keySchema,
      valueSchema,
      keyStateEncoderSpec,
      useMultipleValuesPerKey,
      isInternal
    )

  override def put(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit =
    underlying.put(key, value, colFamilyName)

  override def putList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit =
    underlying.putList(key, values, colFamilyName)

  override def remove(key: UnsafeRow, colFamilyName: String): Unit = underlying.remove(key, colFamilyName)

  override def deleteRange(beginKey: UnsafeRow, endKey: UnsafeRow, colFamilyName: String): Unit =
    underlying.deleteRange(beginKey, endKey, colFamilyName)

  override def merge(key: UnsafeRow, value: UnsafeRow, colFamilyName: String): Unit =
    underlying.merge(key, value, colFamilyName)

  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], colFamilyName: String): Unit =
    underlying.mergeList(key, values, colFamilyName)

  override def commit(): Long = underlying.commit()

  override def abort(): Unit = underlying.abort()

  override def release(): Unit = underlying.release()

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo = underlying.getStateStoreCheckpointInfo()

  override def hasCommitted: Boolean = underlying.hasCommitted

  override def toString: String = underlying.toString
}

private[dstl] object MeasuredStateStore {

  /** The store that Spark's provider made. */
  def unwrap(store: ReadStateStore): ReadStateStore = store match {
    case measured: MeasuredStateStore => measured.underlying
    case other => other
  }
}
