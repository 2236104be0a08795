package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.{RocksDB, StateStoreCheckpointInfo}

/** How Spark's RocksDB loads and commits versions, in a form that no line of Spark changes. */
private[store] trait LoadedRocksDB extends RocksDB {

  /**
   * Told of each version that is to be loaded.
   *
   * @param load      does it
   * @param loadEmpty whether it is to be empty
   */
  protected def loading(version: Long, loadEmpty: Boolean)(load: () => RocksDB): RocksDB

  /**
   * Told of each commit.
   *
   * @param commit does it, with a snapshot if that is asked for here or by Spark
   */
  protected def committing(commit: Boolean => (Long, StateStoreCheckpointInfo)): (Long, StateStoreCheckpointInfo)

  override def load(version: Long, stateStoreCkptId: Option[String], readOnly: Boolean, loadEmpty: Boolean): RocksDB =
    loading(version, loadEmpty)(() => super.load(version, stateStoreCkptId, readOnly, loadEmpty))

  override def commit(forceSnapshot: Boolean): (Long, StateStoreCheckpointInfo) =
    committing(isSnapshotWanted => super.commit(forceSnapshot || isSnapshotWanted))
}
