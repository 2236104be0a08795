// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Event, Inputs, Operator}
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}

/** A task attempt that fails after the commit of its store changes no state: the winner's changes do. */
class TaskRetriesSuite extends ComparisonSuite {
  // Two slots, and up to three attempts for each task.
  override protected def master: String = "local[2,3]"

  private val operator =
    Operator("totals of tasks that fail once", FailingOnce.totals, OutputMode.Update(), state = Seq(Map.empty))

  for (version <- Seq(1, 2))
    test(s"changes of an attempt that fails before its seal are not in the state, checkpoint format version $version") {
      compare(operator, inFormat(version, stock, ours)).foreach { case (contender, checkpoint) =>
        val playing = new Playing(operator, contender, checkpoint)
        val state = playing.readState(Map.empty)
        assert(state.nonEmpty == playing.isReadable && !state.exists(_.contains(FailingOnce.Wrong.toString)), state)
      }
    }

  for (version <- Seq(1, 2))
    test(
      s"uploaded changes of an attempt that fails before its seal are not in the state, checkpoint format version $version"
    ) {
      val uploading = operator.copy(configuration =
        Map("spark.sql.streaming.stateStore.dstl.inline.maxSegmentSize" -> "0")
      )
      compare(uploading, inFormat(version, stock, ours)): Unit
    }

  test("the metrics of a batch count what its tasks have replayed, without their failed attempts") {
    def replayed(fails: Boolean): Map[String, Long] = {
      val playing = new Playing(operator, ours, fresh("m"))
      FailingOnce.fails = fails
      try {
        playing.play(batches.take(2))
        val query = playing.start()
        try {
          playing.feed(query, batches(2))
          val metrics = query.recentProgress.filter(_.batchId == 2).head.stateOperators.head.customMetrics.asScala
          metrics.collect { case (name, value) if name.startsWith("dstlReplayed") => name -> value.toLong }.toMap
        } finally query.stop()
      } finally FailingOnce.fails = true
    }
    val without = replayed(fails = false)
    assert(without.size == 3 && without.forall(_._2 > 0), without)
    val recordsAndSegments = without - "dstlReplayedBytes"
    assert((replayed(fails = true) - "dstlReplayedBytes") == recordsAndSegments)
  }
}

/** A count for which the first attempt of each task commits a wrong value and fails. */
object FailingOnce {
  val Wrong = 987654

  @volatile var fails = true

  def totals(inputs: Inputs): DataFrame = {
    val session = inputs.session
    import session.implicits._
    inputs.left.toDS().groupByKey(_.key).mapGroupsWithState(GroupStateTimeout.NoTimeout)(count)
      .mapPartitions(failAtTheEnd).toDF()
  }

  private def isFirstAttempt: Boolean = fails && TaskContext.get().attemptNumber() == 0

  private def count(key: String, events: Iterator[Event], state: GroupState[Int]): (String, Int) = {
    val after = if (isFirstAttempt) Wrong else state.getOption.getOrElse(0) + events.size
    state.update(after)
    (key, after)
  }

  /** By the time all rows are read the store has committed. */
  private def failAtTheEnd(rows: Iterator[(String, Int)]): Iterator[(String, Int)] = {
    val all = rows.toVector
    if (isFirstAttempt) throw new IllegalStateException("the first attempt fails")
    all.iterator
  }
}
