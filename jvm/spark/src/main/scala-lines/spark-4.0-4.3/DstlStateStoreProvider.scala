// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.hadoop.conf.Configuration

import sparkdstl.log.config.LogOptions

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.execution.streaming.state.dstl.files.{CheckpointDirectory, LoggedStore}
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.LogMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{EntryPoints, ProcessResources}
import org.apache.spark.sql.execution.streaming.state.dstl.store.{
  DstlRocksDB,
  MaintenanceShims,
  ProviderShims,
  RocksDBArguments
}

/**
 * Spark's RocksDB state store with its changelogs in the log. Set it as `spark.sql.streaming.stateStore.providerClass`.
 *
 * It differs from Spark's provider in three points: changelog checkpointing is always on, its files go through
 * [[DstlCheckpointFileManager]] whether or not that is configured, and local state is used only if it was committed
 * ([[DstlRocksDB]]). Without the file manager on the driver the log is inactive, and changelogs are plain files in Spark's layout.
 */
class DstlStateStoreProvider extends ProviderShims with MaintenanceShims {
  // Set before Spark makes the database, which some lines do within `init`.
  @volatile private var resources: ProcessResources = _
  @volatile private var store: Option[LoggedStore] = None

  /** The file manager of its files. */
  protected def fileManager: Class[_ <: CheckpointFileManager] = classOf[DstlCheckpointFileManager]

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConf: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]
  ): Unit = {
    EntryPoints.configure(hadoopConf, fileManager.getName)
    hadoopConf.setBoolean(EntryPoints.LogsSnapshots, true)
    val environment = DstlEnvironment.get
    resources = environment.resources
    store =
      CheckpointDirectory.storeAt(stateStoreId.storeCheckpointLocation(), hadoopConf, resources, environment.workers)
    store.foreach(_.checkPartitions())
    beforeInit(stateStoreId, useColumnFamilies, storeConf, hadoopConf)
    super.init(
      stateStoreId,
      keySchema,
      valueSchema,
      keyStateEncoderSpec,
      useColumnFamilies,
      storeConf,
      hadoopConf,
      useMultipleValuesPerKey,
      stateSchemaProvider
    )
  }

  override protected def newRocksDB(of: RocksDBArguments): RocksDB = {
    val options = store.fold(LogOptions.parse(of.hadoopConf))(_.checkpoint.options)
    new DstlRocksDB(of.copy(conf = of.conf.copy(enableChangelogCheckpointing = true)), options, resources, store)
  }

  /** As Spark ends, which needs no maintenance, Spark would log an error of each store. */
  override protected def skipsMaintenance: Boolean = resources.waiting.isEnded

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] =
    super.supportedCustomMetrics ++ LogMetrics.all
}
