// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.RocksDB

/**
 * A database whose commit survives the abort of a read-only store. A task of an aggregation opens its store twice, to read and to
 * change it, and aborts the first when it completes: Spark would roll back the commit and load the store again for the next batch.
 */
private[store] trait KeptCommitShims extends RocksDB {

  // Whether the last call was a commit.
  @volatile protected var isAsCommitted = false

  override def rollback(): Unit =
    if (!isAsCommitted || !Option(TaskContext.get()).exists(_.isCompleted())) super.rollback()
}
