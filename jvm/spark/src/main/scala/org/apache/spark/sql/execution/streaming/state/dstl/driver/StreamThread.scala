// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.util.UUID

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{QueryExecutionThread, StreamExecution}

/** The ids of a streaming query and its run, from the name of the thread that drives it. */
private[dstl] final case class DrivenQuery(query: UUID, run: UUID) {

  /** The query in the active session, on the thread that drives it. */
  def execution: Option[StreamExecution] =
    for {
      session <- SparkSession.getActiveSession
      running <- Option(session.sharedState.activeStreamingQueries.get(query))
      if running.runId == run
    } yield running
}

/**
 * Finds the query that the current thread drives.
 *
 * Spark does not pass the run to the metadata logs' file managers. It is in the name of the thread that drives the query
 * (`StreamExecution.prettyIdString`), which user code in `foreachBatch` has no reason to change, unlike the job group.
 */
private[dstl] object StreamThread {
  private val Name = """(?s).*\[id = ([0-9a-f-]{36}), runId = ([0-9a-f-]{36})\]""".r

  def query: Option[DrivenQuery] = Thread.currentThread() match {
    case thread: QueryExecutionThread => queryIn(thread.getName)
    case _ => None
  }

  /** The query in a thread's name; the query's own name comes before it and may be anything. */
  private[dstl] def queryIn(threadName: String): Option[DrivenQuery] = threadName match {
    case Name(query, run) => Some(DrivenQuery(UUID.fromString(query), UUID.fromString(run)))
    case _ => None
  }
}
