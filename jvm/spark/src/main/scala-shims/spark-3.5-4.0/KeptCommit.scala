package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.RocksDB

/**
 * A database that keeps what a task has committed. A task that reads a store and then changes it, as an aggregation's does, aborts
 * its reading when it completes: Spark would roll back the task's commit, and load the store again for the next batch.
 */
private[store] trait KeptCommit extends RocksDB {

  // Whether the last call was a commit.
  @volatile protected var isAsCommitted = false

  override def rollback(): Unit =
    if (!isAsCommitted || !Option(TaskContext.get()).exists(_.isCompleted())) super.rollback()
}
