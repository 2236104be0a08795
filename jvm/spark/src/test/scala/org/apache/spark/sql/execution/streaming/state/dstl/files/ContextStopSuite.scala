// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import scala.concurrent.{Await, ExecutionContext, Future, Promise}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import sparkdstl.log.runtime.Waiting
import sparkdstl.testing.GatedFileSystem

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, StreamingQueryException}

/**
 * When the SparkContext stops, every wait for the log ends: the query fails within seconds and leaves no thread. The error is the
 * log's if the query's own thread waits for the log, and Spark's if it waits for a job.
 */
class ContextStopSuite extends QuerySuite with Patience {
  import ContextStopSuite._

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + GatedFileSystem.entry._1 -> GatedFileSystem.entry._2
  )

  private val uploads = Map(option("inline.maxSegmentSize") -> "0")

  // A chunk waits for the memory of the one before it, so tasks wait in the middle of their changes.
  private val littleMemory = uploads ++ Map(
    option("upload.maxInFlight") -> "1m",
    option("preemptivePersistThreshold") -> "64k",
    option("batch.persistSizeThreshold") -> "64k"
  )

  private val snapshots = Map(
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
    option("materialize.replayCost") -> "100000",
    option("batch.persistDelay") -> "10ms"
  )

  override def afterEach(): Unit = {
    GatedFileSystem.open()
    super.afterEach()
  }

  /** Closes only the stores of a stopped context, whose queries cannot be stopped. */
  override protected def stopSpark(): Unit = if (spark.sparkContext.isStopped) StateStore.stop() else super.stopSpark()

  /** A running count of keys. */
  private final class Counting(fed: Int = 0) {
    private val input = numbers()
    (1 to fed).foreach(batch => feed(1 to 10 * batch))
    val query: StreamingQuery = begin(input.toDF().groupBy(concat(col("value"), lit("-" * 60)).as("key")).count())

    def feed(values: Range): Unit = input.addData(values): Unit

    def process(values: Range): Unit = {
      feed(values)
      query.processAllAvailable()
    }
  }

  private def begin(result: DataFrame, afterwards: DataFrame => Unit = _ => ()): StreamingQuery = {
    val sink = (batch: DataFrame, _: Long) => {
      batch.count(): Unit
      afterwards(batch)
    }
    result.writeStream.outputMode(OutputMode.Update()).option("checkpointLocation", s"gated://$checkpoint")
      .foreachBatch(sink).start()
  }

  private def awaitStall(): Unit = eventually { assert(GatedFileSystem.waitingRequests >= 1); () }
  private def awaitEnds(): Unit = eventually { assert(waits == Nil); () }

  /** Stops the context while storage does not answer, until all waits have ended: the stop itself waits longer for its runs. */
  private def stopUntil[T](waitsEnd: => T): T = {
    val stopping = Future(spark.stop())(ExecutionContext.global)
    val ended = waitsEnd
    GatedFileSystem.open()
    Await.result(stopping, EndsWithinMillis.millis)
    ended
  }

  private def endOf(query: StreamingQuery): String = stopUntil(failureOf(query))

  private def failureOf(query: StreamingQuery): String = {
    val failure = intercept[StreamingQueryException] {
      assert(query.awaitTermination(EndsWithinMillis), s"${query.name} still waits:\n${waits.mkString("\n\n")}")
    }
    awaitEnds()
    messages(failure)
  }

  /** Stacks of the threads that wait for the log. */
  private def waits: Seq[String] = Thread.getAllStackTraces.asScala.toSeq.collect {
    case (thread, stack) if stack.exists(_.getClassName.contains(classOf[Waiting].getName)) =>
      s"${thread.getName}\n  ${stack.mkString("\n  ")}"
  }

  for (
    (what, path, more, values, isNamed) <- Seq(
      ("offsets", "/offsets/1$", Map.empty[String, String], 1 to 10, true),
      ("a commit entry", "/commits/1$", Map.empty[String, String], 1 to 10, true),
      ("uploads of changes", "/dstl/data/", uploads, 1 to 10, true),
      ("memory for uploads, in its tasks,", "/dstl/data/", littleMemory, 1 to 40000, false)
    )
  ) test(s"a query that waits for $what fails when the context stops") {
    stopSpark()
    startSpark(more.toSeq: _*)
    val counting = new Counting
    counting.process(1 to 10)
    GatedFileSystem.shutAt(path.r)
    counting.feed(values)
    awaitStall()
    val end = endOf(counting.query)
    assert(end.contains("DSTL_SPARK_STOPPED") || !isNamed, end)
  }

  for (
    (what, path, isNamed) <- Seq(("its start", "/dstl/epochs", true), ("state, in its tasks,", "/commits/0$", false))
  )
    test(s"a query that waits for $what fails when the context stops") {
      val counting = new Counting
      (1 to 3).foreach(batch => counting.process(1 to 10 * batch))
      counting.query.stop()
      stopSpark()
      GatedFileSystem.shutAt(path.r)
      startSpark()
      val again = new Counting(fed = 4)
      awaitStall()
      val end = endOf(again.query)
      assert(end.contains("DSTL_SPARK_STOPPED") || !isNamed, end)
    }

  test("a snapshot that waits for storage ends with the context") {
    assume(SparkFacts.LogsSnapshots, "on this Spark, snapshots are Spark's files")
    stopSpark()
    startSpark(snapshots.toSeq: _*)
    val counting = new Counting
    GatedFileSystem.shutAt("/dstl/data/".r)
    eventually {
      counting.feed(1 to 100)
      assert(GatedFileSystem.waitingRequests >= 1 && waits.nonEmpty)
      ()
    }
    stopUntil(awaitEnds())
  }

  test("a purge that waits for storage ends with the context") {
    stopSpark()
    startSpark("spark.sql.streaming.minBatchesToRetain" -> "1")
    val counting = new Counting
    (1 to 2).foreach(batch => counting.process(1 to batch))
    // It is read no more.
    GatedFileSystem.shutAt("/offsets/0$".r)
    counting.feed(1 to 3)
    awaitStall()
    // Returns although storage does not answer.
    spark.stop()
    awaitEnds()
  }

  test("maintenance of stores logs nothing of the log once the context has stopped") {
    val counting = new Counting
    counting.process(1 to 10)
    counting.query.stop()
    spark.stop()
    assert(StateStores.loaded.nonEmpty)
    assert(Warnings.during(StateStores.maintain()) == Nil)
  }

  test("a reader of state that waits for storage fails when the context stops") {
    assume(SparkFacts.ReadableFormats.nonEmpty, "this Spark has no reader of state")
    val counting = new Counting
    counting.process(1 to 10)
    counting.query.stop()
    GatedFileSystem.shutAt("/commits/0$".r)
    val reading = Future(StoredStateShims.read(spark, s"gated://$checkpoint", Map.empty))(ExecutionContext.global)
    awaitStall()
    val error = stopUntil(Await.ready(reading, EndsWithinMillis.millis).value.get.failed.get)
    assert(messages(error).contains("DSTL_SPARK_STOPPED"))
  }

  for (isRunning <- Seq(false, true))
    test(
      s"a run marks its end when the context stops, of a query that ${if (isRunning) "is running" else "has ended"}"
    ) {
      val counting = new Counting
      counting.process(1 to 10)
      if (!isRunning) counting.query.stop()
      spark.stop()
      assert(files().filter(_.startsWith("dstl/epochs")).sorted == Seq("dstl/epochs/1", "dstl/epochs/1.ended"))
    }

  test("the end of Spark closes everything, although it is interrupted while a run ends") {
    val environment = DstlEnvironment.get
    environment.driver.foreach(_.runs.busyUntil("root", Promise[Unit]().future)(ExecutionContext.global))
    Thread.currentThread().interrupt()
    intercept[InterruptedException](environment.close())
    val timer = environment.resources.runtime.after(EndsWithinMillis)
    assert(timer.value.exists(_.isFailure))
  }

  test("a query whose own thread stops the context fails, and does not commit the batch") {
    val input = numbers()
    input.addData(1 to 10)
    val query = begin(input.toDF().groupBy("value").count(), _.sparkSession.sparkContext.stop())
    failureOf(query): Unit
    assert(!files().contains("commits/0"))
  }
}

private object ContextStopSuite {
  val EndsWithinMillis = 10000L
}
