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
 * idempotent writes in `foreachBatch`). With stock Spark the state is in files then; the changes that the driver had not written to
 * the log are gone. A function of `foreachBatch` may also read nothing, or only some partitions (`first`, `show`), whose state alone
 * has changed. So the batch is computed again, from the same input and on the same state, and its output discarded.
 */
private[dstl] object SkippedBatch extends Logging {

  /**
   * Runs on the thread that drives the query, before the batch is committed. Fails if the batch fails.
   *
   * @param stores the directories of the stores whose changes tasks have reported
   */
  def computeAgain(query: DrivenQuery, batch: Long, stores: Set[String]): Unit =
    query.execution.flatMap(QueryShims.planOf(_, batch)).filter(wasSkipped(_, stores)).foreach { execution =>
      logWarning(
        s"The sink has skipped batch $batch of query ${query.query}, or partitions of it, whose output it has already or does " +
          "not want. The batch's state is computed again"
      )
      SQLExecution.withNewExecutionId(execution, Some(s"state of batch $batch"))(execution.toRdd.count()): Unit
    }

  /** Whether no task has completed any stateful operator, or none has reported changes of some partition of one. */
  private def wasSkipped(execution: IncrementalExecution, stores: Set[String]): Boolean = {
    val writers = execution.executedPlan.collect { case writer: StateStoreWriter => writer }
    // The metric counts a partition as often as it was computed, so it cannot prove that all were.
    if (stores.isEmpty) writers.nonEmpty && writers.forall(_.longMetric(Instances).value == 0)
    else {
      val partitions = stores.map(_.split('/')).groupMap(_(0))(_(1))
      writers.exists { writer =>
        val reported = writer.stateInfo.flatMap(of => partitions.get(of.operatorId.toString)).fold(0)(_.size)
        reported < writer.children.map(_.outputPartitioning.numPartitions).max
      }
    }
  }

  private val Instances = "numStateStoreInstances"
}
