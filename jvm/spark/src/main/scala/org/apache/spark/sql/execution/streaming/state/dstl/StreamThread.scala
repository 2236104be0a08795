package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.apache.spark.sql.execution.streaming.runtime.QueryExecutionThread

/**
 * Which run of a streaming query the current thread drives.
 *
 * The metadata logs' file managers are not told their run. The thread that drives a query carries it in its name
 * (`StreamExecution.prettyIdString`), which user code in `foreachBatch` does not change, as it may change the job group.
 */
private[dstl] object StreamThread {
  private val RunId = """.*\[id = [0-9a-f-]{36}, runId = ([0-9a-f-]{36})\]""".r

  def run: Option[UUID] = Thread.currentThread() match {
    case thread: QueryExecutionThread => runIn(thread.getName)
    case _ => None
  }

  /** The run in a query thread's name; the query's own name comes before it and may be anything. */
  private[dstl] def runIn(threadName: String): Option[UUID] = threadName match {
    case RunId(run) => Some(UUID.fromString(run))
    case _ => None
  }
}
