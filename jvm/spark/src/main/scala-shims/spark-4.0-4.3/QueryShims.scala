// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints

/** The run of a query's tasks, which Spark passes to them, and a batch's plan. */
private[dstl] object QueryShims {

  /** The run of a store's task, which Spark notes in the store's configuration before the store is loaded; of a reader its scan. */
  def runIn(configuration: Configuration): Option[UUID] = Option(configuration.get(EntryPoints.Scan))
    .orElse(Option(configuration.get(StreamExecution.RUN_ID_KEY))).map(UUID.fromString)

  /** Does nothing: Spark passes the run to the tasks. */
  def noteRun(run: UUID): Unit = ()

  /** The plan of a batch, while the query executes it. */
  def planOf(running: StreamExecution, batch: Long): Option[IncrementalExecution] =
    Option(running.getLatestExecutionContext()).filter(_.batchId == batch).flatMap(of => Option(of.executionPlan))
}
