package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution

/** What the current session's query is executing. */
private[driver] object RunningBatch {

  /** The plan of a batch, if the query is at work on it. */
  def of(query: DrivenQuery, batch: Long): Option[IncrementalExecution] =
    for {
      session <- SparkSession.getActiveSession
      running <- Option(session.sharedState.activeStreamingQueries.get(query.query))
      if running.runId == query.run
      context <- Option(running.getLatestExecutionContext())
      if context.batchId == batch
      execution <- Option(context.executionPlan)
    } yield execution
}
