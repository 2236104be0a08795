// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Files, Path => LocalPath}
import java.sql.Timestamp
import java.util.concurrent.{ConcurrentHashMap, Executors}

import scala.collection.mutable
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import org.scalatest.{Assertion, BeforeAndAfterAll}

import sparkdstl.testing.LocalFiles

import org.apache.spark.sql.{DataFrame, Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.{RocksDBStateStoreProvider, StateStore}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, Trigger}

/** An event of the input of the compared queries. */
final case class Event(key: String, value: Int, at: Timestamp)

object Event {
  def apply(key: String, value: Int, second: Int): Event = Event(key, value, new Timestamp(second * 1000L))
}

/** A way to keep state: its name, and the SQL configurations that select it. */
final case class Contender(name: String, configuration: Map[String, String]) {
  def and(more: (String, String)*): Contender = copy(configuration = configuration ++ more)

  def named(other: String): Contender = copy(name = other)
}

/** The two streams of events that a compared query may read. */
final class Inputs(val session: SparkSession) {
  private val encoder = Encoders.product[Event]
  val left: MemoryStream[Event] = MemoryStream[Event](encoder, session)
  val right: MemoryStream[Event] = MemoryStream[Event](encoder, session)

  /** The events of a stream, late after ten seconds. */
  def events: DataFrame = left.toDF().withWatermark("at", "10 seconds")
}

/** A query's outcome: the sorted rows that the sink got from each batch, and the state at the end, one set for each view. */
final case class Outcome(batches: Map[Long, Seq[String]], state: Seq[Seq[String]])

/**
 * Runs one query with several [[Contender]]s on the same input, restarts it in the middle, and expects the same rows in
 * the same batches. One Spark serves all tests; each query has its own session and checkpoint.
 */
abstract class ComparisonSuite extends LocalSpark with BeforeAndAfterAll {
  private val workers = Executors.newCachedThreadPool()
  private val expected = mutable.Map.empty[(Operator, Contender), Outcome]

  protected val stock: Contender =
    Contender("stock", Map(providerKey -> classOf[RocksDBStateStoreProvider].getName, changelogKey -> "true"))

  protected val ours: Contender = Contender(
    "ours",
    Map(
      providerKey -> classOf[DstlStateStoreProvider].getName,
      fileManagerKey -> classOf[DstlCheckpointFileManager].getName
    )
  )

  /** Stock Spark's provider with our file manager below it. */
  protected val below: Contender =
    stock.and(fileManagerKey -> classOf[DstlCheckpointFileManager].getName).named("below")

  protected def inFormat(version: Int, contenders: Contender*): Seq[Contender] =
    contenders.map(contender => contender.and(formatKey -> version.toString).named(s"${contender.name}-v$version"))

  /** Three batches; the query is restarted before the last. Some events are late, some come twice, some keys meet. */
  protected val batches: Seq[(Seq[Event], Seq[Event])] = Seq(
    (
      Seq(Event("a", 1, 1), Event("b", 2, 2), Event("a", 1, 1), Event("c", 3, 5), Event("d", 4, 8)),
      Seq(Event("a", 10, 2), Event("b", 20, 3), Event("x", 30, 4), Event("y", 15, 28))
    ),
    (
      Seq(Event("a", 7, 30), Event("f", 8, 26), Event("b", 2, 2), Event("c", 5, 12)),
      Seq(Event("f", 13, 27), Event("a", 14, 31), Event("c", 11, 6))
    ),
    (
      Seq(Event("a", 1, 60), Event("g", 2, 61), Event("f", 8, 26), Event("b", 9, 3)),
      Seq(Event("g", 16, 62), Event("a", 17, 32))
    )
  )

  /** The same, and two more, for chains of operators: each passes rows on a batch after the one before it. */
  protected val longer: Seq[(Seq[Event], Seq[Event])] = batches ++ Seq(
    (Seq(Event("h", 1, 100), Event("g", 3, 62)), Seq(Event("h", 18, 101))),
    (Seq(Event("a", 2, 200)), Seq(Event("a", 19, 201)))
  )

  /** SQL configurations of the suite's Spark. */
  protected def configuration: Map[String, String] = Map.empty

  override def beforeAll(): Unit = {
    super.beforeAll()
    directory = Files.createTempDirectory("dstl-comparison")
    spark = createSpark(Map(
      "spark.sql.shuffle.partitions" -> "2",
      "spark.sql.adaptive.enabled" -> "false",
      "spark.sql.streaming.noDataMicroBatches.enabled" -> "false",
      "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h"
    ) ++ configuration)
  }

  override def afterAll(): Unit =
    try {
      workers.shutdownNow()
      spark.stop()
      StateStore.stop()
      LocalFiles.delete(directory)
    } finally super.afterAll()

  /** The place of a new checkpoint. */
  protected def fresh(name: String): LocalPath = Files.createTempDirectory(directory, name).resolve("checkpoint")

  /** The outcome of an operator with stock Spark or another contender, restarted before the last batch; computed once. */
  protected def expectedOf(operator: Operator, contender: Contender = stock): Outcome = expected.getOrElseUpdate(
    (operator, contender),
    new Playing(operator, contender, fresh("expected")).restartingAfter(2, batches)
  )

  /** A new session, with the contender's configurations. */
  protected def session(contender: Contender): SparkSession = configure(spark.newSession(), contender)

  protected def configure(session: SparkSession, contender: Contender): SparkSession = {
    Seq(providerKey, fileManagerKey, changelogKey).foreach(session.conf.unset)
    contender.configuration.foreach { case (key, value) => session.conf.set(key, value) }
    session
  }

  /** Runs the query with every contender at the same time, and expects the outcome of the first from each. */
  protected def compare(
      operator: Operator,
      contenders: Seq[Contender],
      input: Seq[(Seq[Event], Seq[Event])] = batches
  ): Seq[(Contender, LocalPath)] = {
    implicit val pool: ExecutionContext = ExecutionContext.fromExecutor(workers)
    val runs = contenders.map { contender =>
      val checkpoint = fresh(contender.name)
      Future(new Playing(operator, contender, checkpoint).restartingAfter(2, input)).map((checkpoint, _))
    }
    val outcomes = runs.map(Await.result(_, 10.minutes))
    val expected = outcomes.head._2
    assert(expected.batches.values.exists(_.nonEmpty), "the query gives no rows, so the comparison shows nothing")
    contenders.zip(outcomes).tail.foreach { case (contender, (checkpoint, outcome)) =>
      assert(outcome.batches == expected.batches, s"rows of ${contender.name}")
      assert(outcome.state == expected.state, s"state of ${contender.name}")
      assertInLog(checkpoint, outcome.batches.keySet)
    }
    contenders.zip(outcomes.map(_._1))
  }

  /**
   * One query of one contender, over as many runs as wanted.
   *
   * @param uri names the checkpoint if its path is not enough
   */
  protected final class Playing(
      operator: Operator,
      contender: Contender,
      val checkpoint: LocalPath,
      uri: Option[String] = None
  ) {
    private val location = uri.getOrElse(checkpoint.toString)
    val session: SparkSession = ComparisonSuite.this.session(contender.and(operator.configuration.toSeq: _*))
    val inputs = new Inputs(session)
    private val rows = new ConcurrentHashMap[Long, Seq[String]]

    def output: Map[Long, Seq[String]] = rows.asScala.toMap

    /** @param afterwards called with each batch after its rows were taken */
    def start(
        trigger: Trigger = Trigger.ProcessingTime(0),
        afterwards: DataFrame => Unit = _ => ()
    ): StreamingQuery = {
      val sink = (batch: DataFrame, id: Long) => {
        rows.put(id, batch.collect().map(_.json).sorted.toSeq): Unit
        afterwards(batch)
      }
      operator.build(inputs).writeStream.outputMode(operator.mode).trigger(trigger)
        .option("checkpointLocation", location).foreachBatch(sink).start()
    }

    /** Runs some batches of the query and stops it. `afterwards` is as in [[start]]. */
    def play(input: Seq[(Seq[Event], Seq[Event])], afterwards: DataFrame => Unit = _ => ()): Unit = {
      val query = start(afterwards = afterwards)
      try input.foreach(feed(query, _))
      finally query.stop()
    }

    /** Runs a batch that an earlier run has begun, and input that it has not processed. */
    def catchUp(): Unit = complete(start())

    /** Runs one batch of the query. */
    def feed(query: StreamingQuery, batch: (Seq[Event], Seq[Event])): Unit = {
      // Under this lock no batch begins, so both streams' events are in the same one.
      execution(query).withProgressLocked(add(batch))
      query.processAllAvailable()
    }

    def add(batch: (Seq[Event], Seq[Event])): Unit = {
      inputs.left.addData(batch._1)
      if (operator.readsBoth) inputs.right.addData(batch._2): Unit
    }

    def restartingAfter(count: Int, input: Seq[(Seq[Event], Seq[Event])]): Outcome = {
      play(input.take(count))
      play(input.drop(count))
      Outcome(output, operator.state.map(readState))
    }

    /** Whether Spark's readers support the format of the checkpoint. */
    val isReadable: Boolean =
      SparkFacts.ReadableFormats.contains(contender.configuration.getOrElse(formatKey, "1").toInt)

    /** Empty if the state is not readable. */
    def readState(options: Map[String, String]): Seq[String] =
      if (!isReadable) Nil
      else StoredStateShims.read(session, location, options)
  }

  /** No changelog became a file, and the entry of each batch carries its state. */
  protected def assertInLog(checkpoint: LocalPath, expected: Set[Long]): Assertion = {
    assert(files(checkpoint).filter(_.endsWith(".changelog")) == Nil)
    assert(LoggedBatches.of(checkpoint) == expected)
  }

  /** All files below a directory, as paths relative to it. */
  protected def files(below: LocalPath): Seq[String] = LocalFiles.below(below)

  /** The error with which a batch of the query fails. */
  protected def failure(playing: => Unit): String = messages(intercept[Exception](playing))
}

/**
 * A query to compare.
 *
 * @param state views of its state that are compared in the end: options of the state data source
 */
final case class Operator(
    name: String,
    build: Inputs => DataFrame,
    mode: OutputMode = OutputMode.Append(),
    configuration: Map[String, String] = Map.empty,
    state: Seq[Map[String, String]] = Seq(Map.empty),
    readsBoth: Boolean = false
)

object Operator {

  /** A running count and sum for each key. */
  val totals: Operator = Operator(
    "totals",
    _.events.groupBy("key").agg(count("value").as("count"), sum("value").as("sum")),
    OutputMode.Update()
  )

  /** The same, with snapshots: a store that is unloaded after each batch makes them part of commits. */
  val snapshots: Operator = totals.copy(
    name = "totals with a snapshot of each version",
    configuration = Map(
      "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
      "spark.sql.streaming.stateStore.unloadOnCommit" -> "true"
    )
  )
}
