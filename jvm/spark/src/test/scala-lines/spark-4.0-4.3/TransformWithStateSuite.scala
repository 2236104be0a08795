// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

import java.nio.file.Files

import scala.reflect.runtime.universe.TypeTag

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.streaming._

/**
 * transformWithState has the same results as with stock Spark, across a restart. Spark accepts only its own provider's name for it,
 * so only the file manager writes its state to the log.
 */
class TransformWithStateSuite extends ComparisonSuite {
  import Processors._

  private val avro = Map("spark.sql.streaming.stateStore.encodingFormat" -> "avro")

  private def variable(name: String, more: (String, String)*): Map[String, String] =
    Map("stateVarName" -> name) ++ more

  private val operators = Seq(
    Operator(
      "value, list and map state",
      transform(_, new Variables, TimeMode.None()),
      OutputMode.Update(),
      state = Seq(variable("total"), variable("last"), variable("byValue"))
    ),
    Operator(
      "value, list and map state, encoded with avro",
      transform(_, new Variables, TimeMode.None()),
      OutputMode.Update(),
      avro,
      Seq(variable("total"), variable("last", "flattenCollectionTypes" -> "false"), variable("byValue"))
    ),
    Operator(
      "event time timers",
      transform(_, new Timers, TimeMode.EventTime(), OutputMode.Append()),
      OutputMode.Append(),
      state = Seq(variable("open"), Map("readRegisteredTimers" -> "true"))
    ),
    // The rest of a state's time to live differs from run to run, so state that expires is not compared.
    Operator(
      "state with a time to live",
      transform(_, new Expiring, TimeMode.ProcessingTime()),
      OutputMode.Update(),
      state = Nil
    ),
    Operator("initial state", withInitialState, OutputMode.Update(), state = Seq(variable("total")))
  )

  for ((operator, index) <- operators.zipWithIndex) {
    val format = 1 + index % 2
    test(s"${operator.name} is the same with the state in the log, checkpoint format version $format") {
      val ofOurName = Option.when(SparkFacts.TakesAnyProviderForVariables)(ours)
      compare(operator, inFormat(format, Seq(stock, below) ++ ofOurName: _*)): Unit
    }
  }

  test("a reader of state does not warn that changes bypass the log") {
    val playing = new Playing(operators.head, below, fresh("read"))
    playing.play(batches.take(1))
    val said = Warnings.during(playing.readState(variable("total")): Unit)
    assert(!said.exists(_.contains("changelogs are written as plain files")), said)
  }

  test("a state's schema may evolve at a restart, as with stock Spark") {
    val before = Operator("before", transform(_, new Totals, TimeMode.None()), OutputMode.Update(), avro, Nil)
    val after = before.copy(build = transform(_, new WiderTotals, TimeMode.None()), state = Seq(variable("total")))
    val outcomes = inFormat(1, stock, below).map { contender =>
      val checkpoint = fresh(contender.name)
      val first = new Playing(before, contender, checkpoint)
      first.play(batches.take(2))
      val second = new Playing(after, contender, checkpoint)
      // A new source, which lacks the input that the first run has read.
      batches.take(2).foreach(second.add)
      second.play(batches.drop(2))
      (first.output, second.output, second.readState(variable("total")), checkpoint)
    }
    assert(outcomes.head._2.values.flatten.exists(_.contains("2")))
    assert(outcomes(1)._1 == outcomes.head._1)
    assert(outcomes(1)._2 == outcomes.head._2)
    assert(outcomes(1)._3 == outcomes.head._3)
    assertInLog(outcomes(1)._4, Set(0, 1, 2))
  }

  test(
    "a checkpoint that was moved, or whose original is gone, is read and continued: Spark notes the place of its schemas"
  ) {
    val operator = operators.head
    val expected = expectedOf(operator, below).batches
    val (before, after) = (fresh("before"), fresh("after"))
    val first = new Playing(operator, below, before)
    first.play(batches.take(2))
    val state = first.readState(variable("total"))
    Files.move(before, after)
    val second = new Playing(operator, below, after)
    batches.take(2).foreach(second.add)
    assert(second.readState(variable("total")) == state)
    second.play(batches.drop(2))
    assert(first.output ++ second.output == expected)
    assert(!Files.exists(before))
  }

  if (!SparkFacts.TakesAnyProviderForVariables)
    test("Spark refuses transformWithState on the provider of this project, and names the provider") {
      val checkpoint = directory.resolve("refused")
      val error = failure(new Playing(operators.head, ours, checkpoint).play(batches.take(1)))
      assert(error.contains("UNSUPPORTED_FEATURE.STORE_BACKEND_NOT_SUPPORTED_FOR_TWS"), error)
      assert(error.contains(classOf[DstlStateStoreProvider].getName), error)
    }

  private def transform[O <: Product: TypeTag](
      inputs: Inputs,
      processor: StatefulProcessor[String, Event, O],
      time: TimeMode,
      mode: OutputMode = OutputMode.Update()
  ): DataFrame = {
    val session = inputs.session
    import session.implicits._
    val events = inputs.left.toDS()
    val timed = if (time == TimeMode.EventTime()) events.withWatermark("at", "10 seconds") else events
    timed.groupByKey(_.key).transformWithState(processor, time, mode).toDF()
  }

  private def withInitialState(inputs: Inputs): DataFrame = {
    val session = inputs.session
    import session.implicits._
    val initial = Seq(("a", 100L), ("z", 200L)).toDS().groupByKey(_._1)
    inputs.left.toDS().groupByKey(_.key)
      .transformWithState(new FromInitialState, TimeMode.None(), OutputMode.Update(), initial).toDF()
  }
}

/** Stateful processors; outside of the suite, because Spark serializes them. */
object Processors {
  type Lists = (String, Int, String, String)
  type Sizes = (String, Int, Int, Int)
  type Sums = (String, Int, Long)

  final case class Total(count: Int)
  final case class WiderTotal(count: Int, sum: Option[Long])

  /** Counts in a value, keeps the last values in a list and counts each value in a map. */
  class Variables extends StatefulProcessor[String, Event, Lists] {
    import implicits._
    @transient private var total: ValueState[Int] = _
    @transient private var last: ListState[Int] = _
    @transient private var byValue: MapState[Int, Int] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = {
      total = getHandle.getValueState[Int]("total", TTLConfig.NONE)
      last = getHandle.getListState[Int]("last", TTLConfig.NONE)
      byValue = getHandle.getMapState[Int, Int]("byValue", TTLConfig.NONE)
    }

    override def handleInputRows(key: String, rows: Iterator[Event], timers: TimerValues): Iterator[Lists] = {
      val values = rows.map(_.value).toSeq.sorted
      total.update((if (total.exists()) total.get() else 0) + values.size)
      last.appendValue(values.head)
      if (values.size > 1) last.appendList(values.tail.toArray)
      if (key == "b") last.clear()
      values.foreach(v => byValue.updateValue(v, (if (byValue.containsKey(v)) byValue.getValue(v) else 0) + 1))
      if (key == "f") byValue.removeKey(values.head)
      Iterator((key, total.get(), last.get().mkString(","), byValue.iterator().toSeq.sorted.mkString(",")))
    }
  }

  /** Emits a key's count when the watermark has passed its first event by some seconds. */
  class Timers extends StatefulProcessor[String, Event, (String, Int)] {
    import implicits._
    @transient private var open: ValueState[Int] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      open = getHandle.getValueState[Int]("open", TTLConfig.NONE)

    override def handleInputRows(key: String, rows: Iterator[Event], timers: TimerValues): Iterator[(String, Int)] = {
      val events = rows.toSeq
      if (!open.exists()) getHandle.registerTimer(events.map(_.at.getTime).min + 5000)
      open.update((if (open.exists()) open.get() else 0) + events.size)
      if (key == "d") {
        getHandle.listTimers().toSeq.foreach(getHandle.deleteTimer)
        getHandle.registerTimer(19000)
      }
      Iterator.empty
    }

    override def handleExpiredTimer(
        key: String,
        timers: TimerValues,
        expired: ExpiredTimerInfo
    ): Iterator[(String, Int)] = {
      val count = open.get()
      open.clear()
      Iterator((key, count))
    }
  }

  /** Keeps everything for an hour, in each kind of state. */
  class Expiring extends StatefulProcessor[String, Event, Sizes] {
    import implicits._
    private val hour = TTLConfig(java.time.Duration.ofHours(1))
    @transient private var total: ValueState[Int] = _
    @transient private var all: ListState[Int] = _
    @transient private var byValue: MapState[Int, Int] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = {
      total = getHandle.getValueState[Int]("total", hour)
      all = getHandle.getListState[Int]("all", hour)
      byValue = getHandle.getMapState[Int, Int]("byValue", hour)
    }

    override def handleInputRows(key: String, rows: Iterator[Event], timers: TimerValues): Iterator[Sizes] = {
      rows.foreach { event =>
        total.update((if (total.exists()) total.get() else 0) + 1)
        all.appendValue(event.value)
        byValue.updateValue(event.value, 1)
      }
      Iterator((key, total.get(), all.get().size, byValue.keys().size))
    }
  }

  /** Adds to sums in an initial state. */
  class FromInitialState extends StatefulProcessorWithInitialState[String, Event, (String, Long), (String, Long)] {
    import implicits._
    @transient private var total: ValueState[Long] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      total = getHandle.getValueState[Long]("total", TTLConfig.NONE)

    override def handleInitialState(key: String, initial: (String, Long), timers: TimerValues): Unit =
      total.update(initial._2)

    override def handleInputRows(key: String, rows: Iterator[Event], timers: TimerValues): Iterator[(String, Long)] = {
      total.update((if (total.exists()) total.get() else 0L) + rows.map(_.value.toLong).sum)
      Iterator((key, total.get()))
    }
  }

  /** Counts. */
  class Totals extends StatefulProcessor[String, Event, (String, Int)] {
    import implicits._
    @transient private var total: ValueState[Total] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      total = getHandle.getValueState[Total]("total", TTLConfig.NONE)

    override def handleInputRows(key: String, rows: Iterator[Event], timers: TimerValues): Iterator[(String, Int)] = {
      total.update(Total((if (total.exists()) total.get().count else 0) + rows.size))
      Iterator((key, total.get().count))
    }
  }

  /** Continues the counts of [[Totals]], and adds sums. */
  class WiderTotals extends StatefulProcessor[String, Event, Sums] {
    import implicits._
    @transient private var total: ValueState[WiderTotal] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      total = getHandle.getValueState[WiderTotal]("total", TTLConfig.NONE)

    override def handleInputRows(key: String, rows: Iterator[Event], timers: TimerValues): Iterator[Sums] = {
      val before = if (total.exists()) total.get() else WiderTotal(0, None)
      val values = rows.map(_.value).toSeq
      val after = WiderTotal(before.count + values.size, Some(before.sum.getOrElse(0L) + values.sum))
      total.update(after)
      Iterator((key, after.count, after.sum.get))
    }
  }
}
