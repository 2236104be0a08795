// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}

/** Passes the run from a query's thread to its tasks, and finds a batch's plan. */
private[dstl] object QueryShims {
  val RunProperty: String = "sparkdstl.run"

  /** The run of a store's task, in the store's configuration. */
  def runIn(configuration: Configuration): Option[UUID] =
    Option(configuration.get(RunProperty)).map(UUID.fromString)

  /**
   * Passes the run to the query's tasks, also of jobs on other threads: by the session that Spark has made for the query alone,
   * which is the active one on its thread, and whose settings are in the configuration of each store. Called before the first
   * batch.
   */
  def noteRun(run: UUID): Unit = SparkSession.getActiveSession.foreach(_.conf.set(RunProperty, run.toString))

  /** The plan of a batch, while the query executes it. */
  def planOf(running: StreamExecution, batch: Long): Option[IncrementalExecution] =
    Option(running.lastExecution).filter(_.currentBatchId == batch)
}
