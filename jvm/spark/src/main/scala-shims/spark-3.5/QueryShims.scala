// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}

/** Passes the run from a query's thread to its tasks, to which Spark passes the batch alone, and finds a batch's plan. */
private[dstl] object QueryShims {
  val RunProperty: String = "sparkdstl.run"

  /** The run of the calling task; outside of tasks, the one that the configuration names. */
  def runIn(configuration: Configuration): Option[UUID] =
    Option(TaskContext.get()).flatMap(task => Option(task.getLocalProperty(RunProperty)))
      .orElse(Option(configuration.get(RunProperty))).map(UUID.fromString)

  /** Passes the run to the tasks of the calling thread. Called before its first batch. */
  def noteRun(context: SparkContext, run: UUID): Unit = context.setLocalProperty(RunProperty, run.toString)

  /** The plan of a batch, while the query executes it. */
  def planOf(running: StreamExecution, batch: Long): Option[IncrementalExecution] =
    Option(running.lastExecution).filter(_.currentBatchId == batch)
}
