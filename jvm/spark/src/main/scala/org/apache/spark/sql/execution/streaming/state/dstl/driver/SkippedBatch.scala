// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution, WatermarkTracker}
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
   * @param stores  the directories of the stores whose changes tasks have reported
   * @param content Spark's lines of the commit entry, which are returned with the watermark after the batch
   */
  def computeAgain(query: DrivenQuery, batch: Long, stores: Set[String], content: Array[Byte]): Array[Byte] = {
    val again = for {
      running <- query.execution
      execution <- QueryShims.planOf(running, batch)
      if wasSkipped(execution, stores)
    } yield {
      logWarning(
        s"The sink has skipped batch $batch of query ${query.query}, or partitions of it, whose output it has already or does " +
          "not want. The batch's state is computed again"
      )
      SQLExecution.withNewExecutionId(execution, Some(s"state of batch $batch"))(execution.toRdd.count())
      Watermark.replaceFirstIn(new String(content, UTF_8), s"${watermarkAfter(running, execution)}").getBytes(UTF_8)
    }
    again.getOrElse(content)
  }

  /** Advances Spark's watermark for the next batch, which it did before it had seen this one's rows. */
  private def watermarkAfter(running: StreamExecution, execution: IncrementalExecution): Long = {
    val tracker = FieldUtils.readField(running, "watermarkTracker", true).asInstanceOf[WatermarkTracker]
    tracker.updateWatermark(execution.executedPlan)
    tracker.currentWatermark
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
  private val Watermark = """(?<="nextBatchWatermarkMs":)-?\d+""".r
}
