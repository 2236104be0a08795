// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.{Map => JavaMap}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.scalatest.Assertion

import sparkdstl.log.format.SegmentKind

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.functions.{expr, udf}
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}

/**
 * Attempts that fail after the commit of their store, before their seal or after the driver has accepted it: their changes are
 * in no state and in no snapshot.
 */
class LosingAttemptsSuite extends ComparisonSuite with Patience {
  override protected def master: String = "local[2,3]"

  override protected def configuration: Map[String, String] =
    Map("spark.plugins" -> classOf[FailingAfterSealPlugin].getName)

  private val operator =
    Operator("totals of tasks that fail once they have sealed", WrongAtFirst.totals, OutputMode.Update())

  private val unsealed =
    Operator("totals of tasks that fail before they seal", WrongAtFirst.unsealedTotals, OutputMode.Update())

  override def afterAll(): Unit =
    try super.afterAll()
    finally FailingAfterSeal.failing = false

  private def compareFailing(operator: Operator, contenders: Seq[Contender]): Assertion = {
    FailingAfterSeal.failing = true
    FailingAfterSeal.failed.set(0)
    try {
      compare(operator, contenders).foreach { case (contender, checkpoint) =>
        val playing = new Playing(operator, contender, checkpoint)
        val state = playing.readState(Map.empty)
        assert(
          state.nonEmpty == playing.isReadable && !state.exists(_.contains(WrongAtFirst.Wrong.toString)),
          contender.name
        )
      }
      assert(FailingAfterSeal.failed.get() > 0, "no task has failed")
    } finally FailingAfterSeal.failing = false
  }

  for {
    version <- Seq(1, 2)
    (when, failing) <- Seq("after" -> operator, "before" -> unsealed)
    (changes, settings) <- Seq(
      "changes" -> Map.empty[String, String],
      "uploaded changes" -> Map(option("inline.maxSegmentSize") -> "0")
    )
  } test(s"$changes of an attempt that fails $when its seal are not in the state, checkpoint format version $version") {
    compareFailing(failing.copy(configuration = settings), inFormat(version, stock, ours))
  }

  test("the metrics of a batch count what its tasks have replayed, without their failed attempts") {
    def replayed(fails: Boolean): Map[String, Long] = {
      val playing = new Playing(unsealed, ours, fresh("m"))
      FailingAfterSeal.failing = fails
      try {
        playing.play(batches.take(2))
        val query = playing.start()
        try {
          playing.feed(query, batches(2))
          val metrics = query.recentProgress.filter(_.batchId == 2).head.stateOperators.head.customMetrics.asScala
          metrics.collect { case (name, value) if name.startsWith("dstlReplayed") => name -> value.toLong }.toMap
        } finally query.stop()
      } finally FailingAfterSeal.failing = false
    }
    val without = replayed(fails = false)
    assert(without.size == 3 && without.forall(_._2 > 0), without)
    assert(replayed(fails = true) - "dstlReplayedBytes" == without - "dstlReplayedBytes")
  }

  /** A second job of the batch, all of whose attempts write wrong totals, seal them, and fail. */
  private def wrongOnceMore(rows: DataFrame): Unit = {
    FailingAfterSeal.always = true
    FailingAfterSeal.failing = true
    try intercept[Exception](rows.collect()): Unit
    finally {
      FailingAfterSeal.failing = false
      FailingAfterSeal.always = false
    }
  }

  // Stock Spark fails with such attempts, so only this project's provider runs with them.
  test("the attempt that is committed is the one that Spark took, though later ones have sealed the same store") {
    val expected = compare(operator, Seq(stock, ours)).map(_._2).head
    val wanted = new Playing(operator, stock, expected).readState(Map.empty)
    val at = directory.resolve("jobs/checkpoint")
    val playing = new Playing(operator, ours, at)
    playing.play(batches, wrongOnceMore)
    assert(playing.readState(Map.empty) == wanted)
  }

  private val join = Operator(
    "a join of values that are wrong at first",
    WrongAtFirst.joined,
    OutputMode.Append(),
    Map("spark.sql.streaming.join.stateFormatVersion" -> "3"),
    Joins.state,
    readsBoth = true
  )

  if (SparkFacts.JoinFormats.contains(3))
    test("a snapshot that is part of a commit is that of the winner") {
      // It adds column families, which no changelog tells of, so every attempt at its first batch makes a snapshot.
      val at = directory.resolve("forced/checkpoint")
      val playing = new Playing(join, inFormat(1, ours).head, at)
      playing.play(batches.take(1), wrongOnceMore)
      assert(FailingAfterSeal.failed.getAndSet(0) > 0, "no attempt has failed")
      assert(!files(at).exists(_.endsWith(".zip")), "it became a file")
      val snapshots = LoggedBatches.index(at, 0).get.entries.filter(_.key.kind == SegmentKind.Snapshot)
      assert(snapshots.nonEmpty && snapshots.forall(_.key.version == 1))
      // It is found again when the batches after it are replayed, and by the runs after this one, whatever file has its name.
      snapshots.foreach { snapshot =>
        val file = at.resolve("state").resolve(snapshot.key.relativePath)
        Files.createDirectories(file.getParent)
        Files.write(file, "left by an attempt that does not count".getBytes(UTF_8))
      }
      playing.play(batches.slice(1, 2))
      assert(LoggedBatches.index(at, 1).get.snapshots.exists(_.held.map(_.key).toSet == snapshots.map(_.key).toSet))
      playing.play(batches.drop(2))
      val undisturbed = new Playing(join, inFormat(1, stock).head, directory.resolve("undisturbed/checkpoint"))
      undisturbed.play(batches)
      assert(playing.output == undisturbed.output)
      for (side <- Joins.state; batch <- batches.indices; options = side + ("batchId" -> batch.toString))
        assert(playing.readState(options) == undisturbed.readState(options))
      assert(!playing.readState(Joins.state.head).exists(_.contains(WrongAtFirst.Wrong.toString)))
    }

  if (SparkFacts.JoinFormats.contains(3))
    test("an entry with checkpoint ids holds the snapshot and files of the winner only") {
      val at = directory.resolve("forced-ids/checkpoint")
      val playing = new Playing(join, inFormat(2, ours).head, at)
      playing.play(batches.take(1), wrongOnceMore)
      assert(!files(at).exists(name => name.contains(".zip") || name.contains(".sst")))
      val segments = LoggedBatches.index(at, 0).get.entries
      val zips = segments.filter(_.key.kind == SegmentKind.Snapshot)
      assert(zips.nonEmpty && zips.map(_.key.storeDirectory).distinct.size == zips.size)
      segments.filter(_.key.kind == SegmentKind.SnapshotFile).groupBy(_.key.storeDirectory).foreach {
        case (store, files) =>
          assert(files.map(_.attempt).distinct.size == 1, store)
      }
      playing.play(batches.drop(1))
      val undisturbed = new Playing(join, inFormat(2, stock).head, directory.resolve("undisturbed-ids/checkpoint"))
      undisturbed.play(batches)
      assert(playing.output == undisturbed.output)
    }

  private def hasSnapshot(at: java.nio.file.Path): Boolean =
    LoggedBatches.indexes(at).flatMap(_.entries)
      .exists(_.key.kind == SegmentKind.Snapshot)

  test("a snapshot made before the winning attempt begins, or after the batch, holds the winner's state") {
    val isLogged = SparkFacts.LogsSnapshots
    val logged = Map("materialize.replayCost" -> "100000", "batch.persistDelay" -> "10ms").filter(_ => isLogged)
    val snapshots = operator.copy(configuration =
      Map("spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1") ++
        logged.map { case (key, value) => option(key) -> value }
    )
    val before = StateStores.uploadedSnapshots
    val expected = compare(operator, Seq(stock, ours)).map(_._2).head
    val wanted = new Playing(operator, stock, expected).readState(Map.empty)
    val at = directory.resolve(s"snapshots-$isLogged/checkpoint")
    val playing = new Playing(snapshots, ours, at)
    FailingAfterSeal.failing = true
    FailingAfterSeal.maintaining = true
    try {
      val query = playing.start()
      try batches.foreach { batch =>
          playing.feed(query, batch)
          // Not after the last batch: a later snapshot could replace a wrong one.
          if (batch != batches.last) FailingAfterSeal.maintain()
          // A store that is loaded once more for a second attempt may make it part of the commit.
          if (isLogged && batch == batches(1))
            eventually(assert(StateStores.uploadedSnapshots > before || hasSnapshot(at)))
        }
      finally query.stop()
    } finally {
      FailingAfterSeal.failing = false
      FailingAfterSeal.maintaining = false
    }
    assert(if (isLogged) hasSnapshot(at) else files(at).exists(_.endsWith(".zip")), "there is no snapshot")
    assert(playing.readState(Map.empty) == wanted)
    // From each snapshot alone, because the newest state needs no changelog then.
    assert(batches.indices.forall { batch =>
      !playing.readState(Map("batchId" -> batch.toString)).exists(_.contains(WrongAtFirst.Wrong.toString))
    })
  }
}

/** Totals of which a first attempt keeps wrong ones. */
object WrongAtFirst {
  val Wrong = 987654

  def totals(inputs: Inputs): DataFrame = {
    val session = inputs.session
    import session.implicits._
    inputs.left.toDS().groupByKey(_.key).mapGroupsWithState(GroupStateTimeout.NoTimeout)(count).toDF()
  }

  /** The same, of tasks that fail once all rows are read: by then their stores have committed. */
  def unsealedTotals(inputs: Inputs): DataFrame = {
    val session = inputs.session
    import session.implicits._
    totals(inputs).as[(String, Int)].mapPartitions(failAtTheEnd).toDF()
  }

  private def failAtTheEnd(rows: Iterator[(String, Int)]): Iterator[(String, Int)] = {
    val all = rows.toVector
    if (FailingAfterSeal.isMeant(TaskContext.get())) throw new IllegalStateException("the first attempt fails")
    all.iterator
  }

  /** A join in whose own stage the values of the left side become what they are. */
  def joined(inputs: Inputs): DataFrame = {
    val session = inputs.session
    import session.implicits._
    val value =
      udf((value: Int) => if (FailingAfterSeal.isMeant(TaskContext.get())) Wrong else value).asNondeterministic()
    val left = inputs.left.toDF().withWatermark("at", "10 seconds").repartition(2, $"key")
      .withColumn("value", value($"value")).as("left")
    val right = inputs.right.toDF().withWatermark("at", "10 seconds").as("right")
    left.join(right, expr("left.key = right.key AND right.at >= left.at - interval 15 seconds"))
  }

  private def count(key: String, events: Iterator[Event], state: GroupState[Int]): (String, Int) = {
    val isWrong = FailingAfterSeal.isMeant(TaskContext.get())
    val after = if (isWrong) Wrong else state.getOption.getOrElse(0) + events.size
    state.update(after)
    (key, after)
  }
}

/** The plugin's effects on the tasks of this process. */
object FailingAfterSeal {
  @volatile var failing = false
  @volatile var maintaining = false

  /** Applies to all attempts, not only to first ones. */
  @volatile var always = false
  val failed = new AtomicInteger

  def isMeant(task: TaskContext): Boolean = failing && (always || task.attemptNumber() == 0)

  /** Runs Spark's maintenance of every loaded store, on a thread that is not a task's. */
  def maintain(): Unit = {
    val thread = new Thread(() => StateStores.maintain(), "maintaining")
    thread.start()
    thread.join()
  }
}

/** Registers a completion listener before all others, which therefore runs after them, and fails first attempts. */
class FailingAfterSealPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverPlugin {
    override def init(context: SparkContext, plugin: PluginContext): JavaMap[String, String] = JavaMap.of()
  }

  override def executorPlugin(): ExecutorPlugin = new ExecutorPlugin {
    override def onTaskStart(): Unit = if (FailingAfterSeal.failing) {
      val context = TaskContext.get()
      // Tasks of a shuffle's map side have no state, and fail as well.
      if (FailingAfterSeal.isMeant(context))
        context.addTaskCompletionListener[Unit] { (_: TaskContext) =>
          FailingAfterSeal.failed.incrementAndGet()
          throw new IllegalStateException("the first attempt fails after it has sealed")
        }: Unit
      else if (FailingAfterSeal.maintaining) FailingAfterSeal.maintain()
    }
  }
}
