// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.util.Utils

/** The arguments that only later lines have: none. */
private[dstl] final case class LaterArguments()

/** The constructor of Spark's database. */
private[store] abstract class RocksDBShims(of: RocksDBArguments)
    extends RocksDB(
      of.dfsRootDir,
      of.conf,
      of.localRootDir,
      of.hadoopConf,
      of.loggingId,
      of.useColumnFamilies,
      of.enableStateStoreCheckpointIds,
      of.partitionId
    ) with LockedDatabaseShims { this: DstlRocksDB =>

  // Replaces Spark's own, which no load has used yet.
  override private[spark] val fileManager: RocksDBFileManager =
    managerOfFiles(Utils.createDirectory(of.localRootDir.getAbsolutePath, "fileManager"))

  override def commit(): Committed = {
    val committed = super.commit()
    noteCommitted()
    committed
  }

  /** Spark's method takes the lock, which it has released in the commit: it would wait for another attempt, or fail. */
  override def metricsOpt: Option[RocksDBMetrics] =
    RocksDBShims.recordedMetrics.get(this).asInstanceOf[Option[RocksDBMetrics]]

  override protected def lockArguments: Seq[AnyRef] = Seq(LoadStore)

  /** Takes Spark's lock of the store, before a load. */
  private[store] def lockForLoad(): Unit = lock()

  /** Rolls back under the lock, in a load. */
  private[store] def rollbackForLoad(): Unit = rollbackLocked()
}

private object RocksDBShims {
  private val recordedMetrics = FieldUtils.getDeclaredField(classOf[RocksDB], "recordedMetrics", true)
}

/** Counts the changes of Spark's database. */
private[store] trait ChangeShims extends RocksDB { this: DstlRocksDB =>
  override def put(key: Bytes, value: Bytes, family: String, hasPrefix: Boolean): Unit = {
    noteChange()
    super.put(key, value, family, hasPrefix)
  }

  override def merge(key: Bytes, value: Bytes, family: String, hasPrefix: Boolean): Unit = {
    noteChange()
    super.merge(key, value, family, hasPrefix)
  }

  override def remove(key: Bytes, family: String, hasPrefix: Boolean): Unit = {
    noteChange()
    super.remove(key, family, hasPrefix)
  }
}
