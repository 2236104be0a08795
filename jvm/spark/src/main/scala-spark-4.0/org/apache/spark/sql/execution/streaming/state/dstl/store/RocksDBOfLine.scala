package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.util.Utils

/** What Spark tells of a store beside where it is, which is nothing yet. */
private[dstl] final case class ToldOfStore()

/** Spark's RocksDB as it is made, in a form that no line of Spark changes. */
private[store] abstract class RocksDBOfLine(of: NewRocksDB)
    extends RocksDB(
      of.dfsRootDir,
      of.conf,
      of.localRootDir,
      of.hadoopConf,
      of.loggingId,
      of.useColumnFamilies,
      of.enableStateStoreCheckpointIds,
      of.partitionId
    ) {

  /** Makes the manager of the store's files. Called while this is constructed. */
  protected def managerOfFiles(localTempDir: File): RocksDBFileManager

  // Spark makes one of its own before, which nobody uses: nothing asks for it until a version is loaded.
  override private[spark] val fileManager: RocksDBFileManager =
    managerOfFiles(Utils.createTempDir(of.localRootDir.getAbsolutePath, "fileManager"))

  // Whether nothing was done since a version was committed.
  @volatile private var isAsCommitted = false

  override def load(version: Long, stateStoreCkptId: Option[String], readOnly: Boolean): RocksDB = {
    isAsCommitted = false
    super.load(version, stateStoreCkptId, readOnly)
  }

  override def commit(): (Long, StateStoreCheckpointInfo) = {
    val committed = super.commit()
    isAsCommitted = true
    committed
  }

  /**
   * A task that reads a store and then changes it, as an aggregation's does, lets go of what it read when it is completed, by
   * aborting it. Spark rolls back what the task has committed then, and loads the store anew for the next batch.
   */
  override def rollback(): Unit =
    if (!isAsCommitted || !Option(TaskContext.get()).exists(_.isCompleted())) super.rollback()
}
