package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import sparkdstl.log.config.HadoopOptions

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.execution.streaming.state.dstl.files.{CheckpointDirectory, PartitionDirectories}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.SparkVersion
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.LogMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.store.{DstlRocksDB, NewRocksDB, ProviderOfLine}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * Spark's RocksDB state store with its changelogs in the log. Set it as `spark.sql.streaming.stateStore.providerClass`.
 *
 * It is Spark's own provider in all but three things: changelog checkpointing is always on, its files go through
 * [[DstlCheckpointFileManager]] whether or not that is configured, and local state is used only if it is what was committed
 * ([[DstlRocksDB]]). Without the file manager on the driver there is no barrier; then changelogs are plain files in Spark's
 * layout.
 */
private[sql] class DstlStateStoreProvider extends ProviderOfLine {
  @volatile private var run: () => Option[WorkedRun] = () => None
  @volatile private var storeDirectory: Option[String] = None

  /** What its files go through. */
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
    SparkVersion.check()
    // The configuration is the tasks' own, shared by the stores of an operator; Spark notes the run in it likewise.
    hadoopConf.set(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key, fileManager.getName)
    hadoopConf.set(DstlCheckpointFileManager.ChangelogCheckpointing, "true")
    hadoopConf.setBoolean(DstlCheckpointFileManager.LogsSnapshots, true)
    val options = HadoopOptions.parse(hadoopConf)
    val runId = UUID.fromString(hadoopConf.get(StreamExecution.RUN_ID_KEY))
    CheckpointDirectory.of(stateStoreId.storeCheckpointLocation(), hadoopConf) match {
      case CheckpointDirectory.Store(root, directory) =>
        storeDirectory = Some(directory)
        run = () => Some(DstlEnvironment.get.workers.of(root, runId, hadoopConf, options))
        PartitionDirectories.checkForReader(stateStoreId, run().get, hadoopConf, options)
      case _ =>
    }
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

  override protected def newRocksDB(of: NewRocksDB): RocksDB =
    new DstlRocksDB(of.copy(conf = of.conf.copy(enableChangelogCheckpointing = true)), run, storeDirectory)

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] =
    super.supportedCustomMetrics ++ LogMetrics.all
}
