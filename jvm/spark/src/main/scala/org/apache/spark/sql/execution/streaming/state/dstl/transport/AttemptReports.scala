// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.transport

import scala.jdk.CollectionConverters._

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.util.{AccumulatorMetadata, AccumulatorV2, CollectionAccumulator}

/**
 * The task attempts whose results Spark has taken. A task adds its attempt to an accumulator; Spark merges a result's accumulators
 * if and only if it takes the result, before the stage can end (`DAGScheduler.handleTaskCompletion`).
 */
private[dstl] final class AttemptReports(context: SparkContext) {
  private val accumulator = new CollectionAccumulator[String]
  context.register(accumulator)

  /** The accumulator's id, by which tasks add to it. */
  def id: Long = accumulator.id

  /** The attempts that Spark took for `batch`, in that order. Resets the accumulator. */
  def take(batch: Long): Seq[Long] = {
    val reported = accumulator.value.asScala.toVector
    accumulator.reset()
    reported.map(_.split(' ')).collect { case Array(of, attempt) if of.toLong == batch => attempt.toLong }
  }
}

private[dstl] object AttemptReports {

  // A task's copy must count as one, or Spark would send it empty (`AccumulatorV2.writeReplace`). It becomes one when it is
  // deserialized; this one is made here, because nothing is deserialized from what a message brings.
  private val atDriverSide = FieldUtils.getDeclaredField(classOf[AccumulatorV2[_, _]], "atDriverSide", true)

  /** Adds the attempt to its task's result. Runs on the task's thread. */
  def report(task: TaskContext, accumulator: Long, batch: Long): Unit = {
    val copy = new CollectionAccumulator[String]
    copy.metadata = AccumulatorMetadata(accumulator, None, countFailedValues = false)
    atDriverSide.setBoolean(copy, false)
    copy.add(s"$batch ${task.taskAttemptId()}")
    task.registerAccumulator(copy)
  }
}
