package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.util.UUID

import org.apache.spark.sql.execution.streaming.runtime.QueryExecutionThread

/** A streaming query, as the thread that drives it is called. */
private[dstl] final case class DrivenQuery(query: UUID, run: UUID)

/**
 * Which query the current thread drives.
 *
 * The metadata logs' file managers do not get their run from Spark. The thread that drives a query carries it in its name
 * (`StreamExecution.prettyIdString`), which user code in `foreachBatch` does not change, as it may change the job group.
 */
private[dstl] object StreamThread {
  private val Name = """.*\[id = ([0-9a-f-]{36}), runId = ([0-9a-f-]{36})\]""".r

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
