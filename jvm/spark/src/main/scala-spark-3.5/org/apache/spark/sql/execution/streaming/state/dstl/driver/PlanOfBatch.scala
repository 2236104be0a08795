package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}

/** What a query that runs is executing. */
private[driver] object PlanOfBatch {

  /** The plan of a batch, if the query is at work on it. */
  def in(running: StreamExecution, batch: Long): Option[IncrementalExecution] =
    Option(running.lastExecution).filter(_.currentBatchId == batch)
}
