// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.sql.Timestamp

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}

/** Functions over groups, also for the end-to-end tests: Python has none of these operators. */
object GroupStates {

  /** An event of the tests' input. */
  final case class Event(key: String, value: Long, at: Timestamp)

  final case class Total(count: Long, sum: Long)

  /** Count and sum of each key so far. */
  def map(events: DataFrame): DataFrame = {
    val session = events.sparkSession
    import session.implicits._
    events.select("key", "value", "at").as[Event].groupByKey(_.key)
      .mapGroupsWithState[Total, (String, Long, Long)](GroupStateTimeout.NoTimeout)(added).toDF("key", "count", "sum")
  }

  /** The same, emitted once a key has had no event for some time; then its state is removed. */
  def flatMap(events: DataFrame): DataFrame = flatMap(events, 40 * 60 * 1000)

  def flatMap(events: DataFrame, timeoutMillis: Long): DataFrame = {
    val session = events.sparkSession
    import session.implicits._
    events.select("key", "value", "at").as[Event].groupByKey(event => s"${event.key}-${event.value % 9}")
      .flatMapGroupsWithState[Total, (String, Long, Long)](OutputMode.Append(), GroupStateTimeout.EventTimeTimeout)(
        untilTimeout(timeoutMillis)
      ).toDF("key", "count", "sum")
  }

  private def sum(events: Iterator[Event], state: GroupState[Total]): Total = {
    val total = events.foldLeft(state.getOption.getOrElse(Total(0, 0))) { (sum, event) =>
      Total(sum.count + 1, sum.sum + event.value)
    }
    state.update(total)
    total
  }

  private def added(key: String, events: Iterator[Event], state: GroupState[Total]): (String, Long, Long) = {
    val total = sum(events, state)
    (key, total.count, total.sum)
  }

  private def untilTimeout(timeoutMillis: Long)(
      key: String,
      events: Iterator[Event],
      state: GroupState[Total]
  ): Iterator[(String, Long, Long)] =
    if (state.hasTimedOut) {
      val total = state.get
      state.remove()
      Iterator((key, total.count, total.sum))
    } else {
      sum(events, state): Unit
      state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + timeoutMillis)
      Iterator.empty
    }
}
