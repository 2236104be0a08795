// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution
import org.apache.spark.sql.execution.streaming.state.dstl.transport.QueryShims

/**
 * A batch that its sink skips because the sink has the batch's output already: a driver died between the sink's commit and the
 * commit entry, or a user rolled back. Sinks that identify a batch by its number skip it (`FileStreamSink.addBatch`, Delta's,
 * idempotent writes in `foreachBatch`). A function of `foreachBatch` may run nothing, too. With stock Spark the state is in files then; the changes that the driver had not written
 * to the log are gone. So the batch is computed again, from the same input and on the same state, and its output discarded.
 */
private[dstl] object SkippedBatch extends Logging {

  /** Runs on the thread that drives the query, before the batch is committed. Fails if the batch fails. */
  def computeAgain(query: DrivenQuery, batch: Long): Unit =
    query.execution.flatMap(QueryShims.planOf(_, batch)).filter(wasSkipped).foreach { execution =>
      logWarning(
        s"The sink has skipped batch $batch of query ${query.query}, whose output it has already or does not want. Its state is " +
          "computed again"
      )
      SQLExecution.withNewExecutionId(execution, Some(s"state of batch $batch"))(execution.toRdd.count()): Unit
    }

  /** Whether no task has completed any stateful operator. */
  private def wasSkipped(execution: IncrementalExecution): Boolean = {
    val writers = execution.executedPlan.collect { case writer: StateStoreWriter => writer }
    writers.nonEmpty && writers.forall(_.longMetric(Instances).value == 0)
  }

  private val Instances = "numStateStoreInstances"
}
