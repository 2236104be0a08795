package org.apache.spark.sql.execution.streaming.state.dstl.transport

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.PrivateField
import org.apache.spark.util.{AccumulatorMetadata, AccumulatorV2, CollectionAccumulator}

/**
 * Which task attempts Spark has taken. Tasks name themselves in an accumulator; Spark merges what a task's result carries
 * when, and only when, it takes that result, before the stage can end (`DAGScheduler.handleTaskCompletion`).
 */
private[dstl] final class AttemptReports(context: SparkContext) {
  private val accumulator = new CollectionAccumulator[String]
  context.register(accumulator)

  /** By this tasks find the accumulator. */
  def id: Long = accumulator.id

  /** The attempts that were taken for `batch`, in the order in which they were. Forgets all that was reported. */
  def take(batch: Long): Seq[Long] = {
    val reported = accumulator.value.asScala.toVector
    accumulator.reset()
    reported.map(_.split(' ')).collect { case Array(of, attempt) if of.toLong == batch => attempt.toLong }
  }
}

private[dstl] object AttemptReports {

  // A task's copy must count as one, or Spark would send it empty (`AccumulatorV2.writeReplace`). It becomes one when it is
  // deserialized; this one is made here, because nothing is deserialized from what a message brings.
  private val atDriverSide = PrivateField(classOf[AccumulatorV2[_, _]], "atDriverSide")

  /** Adds the task's attempt to what its result will carry. To be called on the task's thread. */
  def report(task: TaskContext, accumulator: Long, batch: Long): Unit = {
    val copy = new CollectionAccumulator[String]
    copy.metadata = AccumulatorMetadata(accumulator, None, countFailedValues = false)
    atDriverSide.setBoolean(copy, false)
    copy.add(s"$batch ${task.taskAttemptId()}")
    task.registerAccumulator(copy)
  }
}
