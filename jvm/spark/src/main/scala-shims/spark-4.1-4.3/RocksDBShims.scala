// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state._

/**
 * Arguments that earlier lines do not have.
 *
 * @param eventForwarder reports uploads of snapshots
 * @param uniqueId       identifies the store in Spark's accounting of memory
 */
private[dstl] final case class LaterArguments(eventForwarder: Option[RocksDBEventForwarder], uniqueId: Option[String])

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
      of.partitionId,
      of.later.eventForwarder,
      of.later.uniqueId
    ) { this: DstlRocksDB =>

  // The provider has it.
  /** Takes Spark's lock of the store, before a load. */
  private[store] def lockForLoad(): Unit = ()

  /** Rolls back under the lock, in a load. */
  private[store] def rollbackForLoad(): Unit = rollback()

  override protected def createFileManager(
      dfsRootDir: String,
      localTempDir: File,
      hadoopConf: Configuration,
      codecName: String,
      loggingId: String,
      storeConf: StateStoreConf
  ): RocksDBFileManager = managerOfFiles(localTempDir)
}
