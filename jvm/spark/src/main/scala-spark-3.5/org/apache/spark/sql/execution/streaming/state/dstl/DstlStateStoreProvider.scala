package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.hadoop.conf.Configuration

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.files.CheckpointDirectory
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.LogMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{EntryPoints, SparkVersion}
import org.apache.spark.sql.execution.streaming.state.dstl.store.DstlRocksDB
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/**
 * Spark's RocksDB state store with its changelogs in the log. Set it as `spark.sql.streaming.stateStore.providerClass`.
 *
 * It is Spark's own provider in all but three things: changelog checkpointing is always on, its files go through
 * [[DstlCheckpointFileManager]] whether or not that is configured, and local state is used only if it is what was committed
 * ([[DstlRocksDB]]). Snapshots are plain files in this Spark. Without the file manager on the driver there is no barrier; then
 * changelogs are plain files in Spark's layout.
 */
private[sql] class DstlStateStoreProvider extends RocksDBStateStoreProvider {

  // Makes the database, which Spark does within `init` and where it keeps what is needed to itself.
  @volatile private var newRocksDB: () => RocksDB =
    () => throw new IllegalStateException("The store is not initialized yet")

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      numColsPrefixKey: Int,
      storeConf: StateStoreConf,
      hadoopConf: Configuration
  ): Unit = {
    SparkVersion.check()
    // The configuration is the tasks' own, shared by the stores of an operator.
    hadoopConf.set(EntryPoints.FileManagerClass, EntryPoints.FileManager)
    hadoopConf.set(EntryPoints.ChangelogCheckpointing, "true")
    val location = stateStoreId.storeCheckpointLocation()
    val environment = DstlEnvironment.get
    val store = CheckpointDirectory.storeAt(location, hadoopConf, environment.workers)
    newRocksDB = () => {
      // As Spark names a store in its logs.
      val name = s"StateStoreId(opId=${stateStoreId.operatorId},partId=${stateStoreId.partitionId}," +
        s"name=${stateStoreId.storeName})"
      val local = Utils.getLocalDir(Option(SparkEnv.get).fold(new SparkConf)(_.conf))
      val conf = RocksDBConf(storeConf).copy(enableChangelogCheckpointing = true)
      val directory = Utils.createTempDir(local, name)
      new DstlRocksDB(location.toString, conf, directory, hadoopConf, name, environment.resources, store)
    }
    super.init(stateStoreId, keySchema, valueSchema, numColsPrefixKey, storeConf, hadoopConf)
  }

  override private[sql] lazy val rocksDB: RocksDB = newRocksDB()

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] =
    super.supportedCustomMetrics ++ LogMetrics.all
}
