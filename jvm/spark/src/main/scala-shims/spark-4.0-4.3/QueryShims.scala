package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}

/** What a query's thread and its tasks have of each other. */
private[dstl] object QueryShims {

  /** The run of a store's task, which Spark notes in the store's configuration before the store is loaded. */
  def runIn(configuration: Configuration): Option[UUID] =
    Option(configuration.get(StreamExecution.RUN_ID_KEY)).map(UUID.fromString)

  /** Notes the run for the tasks of the calling thread, before its first batch. Spark does that here. */
  def noteRun(context: SparkContext, run: UUID): Unit = ()

  /** The plan of a batch, while the query executes it. */
  def planOf(running: StreamExecution, batch: Long): Option[IncrementalExecution] =
    Option(running.getLatestExecutionContext()).filter(_.batchId == batch).flatMap(of => Option(of.executionPlan))
}
