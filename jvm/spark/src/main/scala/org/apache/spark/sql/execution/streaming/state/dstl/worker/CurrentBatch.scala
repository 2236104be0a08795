// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution

/** The batch of the current task. */
private[dstl] object CurrentBatch {

  /** Whether the current task belongs to this batch, which is then not committed yet. */
  def isAt(batch: Long): Boolean = get.contains(batch)

  /**
   * The batch, once the task changes a store, or if the query's thread has started its job. Spark notes the batch on that thread
   * alone: a job of `foreachBatch` on another thread has no note, or that of an earlier batch.
   */
  def get: Option[Long] = Option(TaskContext.get()).flatMap { context =>
    TaskLog.batchOf(context)
      .orElse(Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).flatMap(_.toLongOption))
  }
}
