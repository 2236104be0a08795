// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.files.CheckpointDirectory
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.LogMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{EntryPoints, ProcessResources}
import org.apache.spark.sql.execution.streaming.state.dstl.store.{DstlRocksDB, LazyDatabaseShims}
import org.apache.spark.sql.types.StructType

/**
 * Spark's RocksDB state store with its changelogs in the log. Set it as `spark.sql.streaming.stateStore.providerClass`.
 *
 * It differs from Spark's provider in three points: changelog checkpointing is always on, its files go through
 * [[DstlCheckpointFileManager]] whether or not that is configured, and local state is used only if it was committed
 * ([[DstlRocksDB]]). Snapshots are plain files in this Spark. Without the file manager on the driver the log is inactive, and
 * changelogs are plain files in Spark's layout.
 */
class DstlStateStoreProvider extends LazyDatabaseShims {
  @volatile private var resources: ProcessResources = _

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      numColsPrefixKey: Int,
      storeConf: StateStoreConf,
      hadoopConf: Configuration
  ): Unit = {
    EntryPoints.configure(hadoopConf, EntryPoints.FileManager)
    val location = stateStoreId.storeCheckpointLocation()
    val environment = DstlEnvironment.get
    resources = environment.resources
    val store = CheckpointDirectory.storeAt(location, hadoopConf, resources, environment.workers)
    makeWith(stateStoreId) { (name, local) =>
      val conf = RocksDBConf(storeConf).copy(enableChangelogCheckpointing = true)
      new DstlRocksDB(location.toString, conf, local, hadoopConf, name, resources, store)
    }
    super.init(stateStoreId, keySchema, valueSchema, numColsPrefixKey, storeConf, hadoopConf)
  }

  /** As Spark ends, which needs no maintenance, Spark would log an error of each store. */
  override def doMaintenance(): Unit = if (!resources.waiting.isEnded) super.doMaintenance()

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] =
    super.supportedCustomMetrics ++ LogMetrics.all
}
