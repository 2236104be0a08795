package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Files, Path => LocalPath}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame, Encoders, ForeachWriter, Row}
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.runtime.AsyncProgressTrackingMicroBatchExecution
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.{OutputMode, Trigger}

/** Each way to trigger batches, and to unload stores between them, gives what it gives with stock Spark. */
class TriggersSuite extends ComparisonSuite {
  private val operator = Operator.totals

  private def fresh(name: String): LocalPath = Files.createTempDirectory(directory, name).resolve("checkpoint")

  /** One run for each batch of input, each ending by itself. */
  private def endingRuns(contender: Contender, trigger: Trigger): (LocalPath, Map[Long, Seq[String]]) = {
    val playing = new Playing(operator, contender, fresh(contender.name))
    batches.foreach { batch =>
      playing.add(batch)
      playing.start(trigger).awaitTermination()
    }
    (playing.checkpoint, playing.output)
  }

  @annotation.nowarn("cat=deprecation")
  private def once: Trigger = Trigger.Once()

  for ((name, trigger, version) <- Seq(("available-now", Trigger.AvailableNow(), 1), ("once", once, 2)))
    test(s"with trigger $name each run goes on from the one before, checkpoint format version $version") {
      val runs = inFormat(version, stock, ours).map(endingRuns(_, trigger))
      assert(runs.head._2.size == batches.size)
      assert(runs(1)._2 == runs.head._2)
      assertInLog(runs(1)._1, runs.head._2.keySet)
    }

  test("with a processing time trigger batches without data let go of state, and are in the log too") {
    val eager = Map("spark.sql.streaming.noDataMicroBatches.enabled" -> "true")
    val windows = Operator(
      "windows",
      _.events.groupBy(window(col("at"), "10 seconds")).count(),
      configuration = eager
    )
    compare(windows, Seq(stock, ours)): Unit
  }

  for (version <- Seq(1, 2))
    test(s"stores that are unloaded after each batch are loaded from the log, checkpoint format version $version") {
      val unloading = Map("spark.sql.streaming.stateStore.unloadOnCommit" -> "true")
      compare(operator.copy(configuration = unloading), inFormat(version, stock, ours)): Unit
    }

  test("foreachBatch that looks at its batch more than once commits each batch's state once, as with stock Spark") {
    val outcomes = Seq(stock, ours).map { contender =>
      val own = session(contender)
      val inputs = new Inputs(own)
      val checkpoint = fresh(contender.name)
      val seen = new ConcurrentLinkedQueue[(Long, Long)]
      def play(values: Seq[(Seq[Event], Seq[Event])]): Unit = {
        val query = operator.build(inputs).writeStream.outputMode(operator.mode)
          .option("checkpointLocation", checkpoint.toString)
          .foreachBatch { (batch: DataFrame, id: Long) =>
            val kept = batch.persist()
            // User code may name its own jobs; the run is known by other means.
            own.sparkContext.setJobGroup("mine", "my own jobs")
            seen.add((id, kept.count())): Unit
            seen.add((id, kept.agg(sum("count")).head().getLong(0))): Unit
            kept.unpersist(): Unit
          }.start()
        try values.foreach { batch =>
            inputs.left.addData(batch._1)
            query.processAllAvailable()
          }
        finally query.stop()
      }
      play(batches.take(2))
      play(batches.drop(2))
      (checkpoint, seen.asScala.toSeq)
    }
    assert(outcomes(1)._2 == outcomes.head._2)
    assertInLog(outcomes(1)._1, Set(0, 1, 2))
  }

  test("asynchronous progress tracking is refused for stateful queries, in Spark's words, and for others it works") {
    val option = AsyncProgressTrackingMicroBatchExecution.ASYNC_PROGRESS_TRACKING_ENABLED
    def run(contender: Contender, stateful: Boolean): Option[String] = {
      val own = session(contender)
      val inputs = new Inputs(own)
      val result = if (stateful) operator.build(inputs) else inputs.left.toDF()
      inputs.left.addData(batches.head._1)
      val query = result.writeStream.format("noop").outputMode(if (stateful) "update" else "append")
        .option(option, "true").option("checkpointLocation", fresh("async").toString).start()
      try {
        query.processAllAvailable()
        None
      } catch { case e: Exception => Some(messages(e)) }
      finally query.stop()
    }
    Seq(stock, ours).foreach { contender =>
      assert(run(contender, stateful = true).exists(_.contains("does not support async progress tracking")))
      assert(run(contender, stateful = false).isEmpty)
    }
  }

  test("real-time mode is refused for stateful queries, in Spark's words") {
    Seq(stock, ours).foreach { contender =>
      val error = failure(realTime(contender, fresh("real-time"), checked = true): Unit)
      assert(error.contains("STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"), error)
      assert(error.contains("StateStoreSaveExec"), error)
    }
  }

  test("real-time mode with Spark's check switched off gives the same with the state in the log, across a restart") {
    val runs = Seq(stock, ours).map { contender =>
      val checkpoint = fresh(contender.name)
      (checkpoint, realTime(contender, checkpoint, checked = false))
    }
    assert(runs.head._2.nonEmpty)
    assert(runs(1)._2 == runs.head._2)
    assert(LoggedBatches.of(runs(1)._1).nonEmpty)
    assert(files(runs(1)._1).filter(_.endsWith(".changelog")) == Nil)
  }

  /** The final rows of a running count, over two runs in real-time mode. */
  private def realTime(contender: Contender, checkpoint: LocalPath, checked: Boolean): Map[String, Long] = {
    val own = session(contender.and(
      "spark.sql.streaming.realTimeMode.minBatchDuration" -> "500",
      "spark.sql.streaming.realTimeMode.allowlistCheck" -> checked.toString
    ))
    val input = new LowLatencyMemoryStream[Event](0, own, 1)(Encoders.product[Event])
    RealTimeRows.clear()
    def play(events: Seq[Event]): Unit = {
      input.addData(events)
      val query = input.toDF().groupBy("key").count().writeStream.outputMode(OutputMode.Update())
        .trigger(RealTimeTrigger("500 milliseconds")).option("checkpointLocation", checkpoint.toString)
        .foreach(new RealTimeRows).start()
      try query.processAllAvailable()
      finally query.stop()
    }
    play(batches.head._1)
    play(batches(1)._1)
    RealTimeRows.all
  }
}

/** Keeps the newest row of each key; outside of the suite, because Spark serializes it. */
class RealTimeRows extends ForeachWriter[Row] {
  override def open(partition: Long, epoch: Long): Boolean = true
  override def process(row: Row): Unit = RealTimeRows.put(row.getString(0), row.getLong(1))
  override def close(error: Throwable): Unit = ()
}

object RealTimeRows {
  // Guarded by this.
  private var rows = Map.empty[String, Long]

  def put(key: String, count: Long): Unit = synchronized { rows = rows.updated(key, count) }
  def clear(): Unit = synchronized { rows = Map.empty }
  def all: Map[String, Long] = synchronized(rows)
}
