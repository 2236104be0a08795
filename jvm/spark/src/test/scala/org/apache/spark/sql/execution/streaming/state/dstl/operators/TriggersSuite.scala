// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

import java.nio.file.{Path => LocalPath}
import java.util.Properties
import java.util.concurrent.ConcurrentLinkedQueue

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import sparkdstl.testing.LocalFiles

import org.apache.spark.SparkContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.runtime.AsyncProgressTrackingMicroBatchExecution
import org.apache.spark.sql.execution.streaming.state.dstl.{
  ComparisonSuite,
  Contender,
  Inputs,
  Joins,
  Operator,
  SparkFacts
}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.Trigger

/** Each trigger, and stores that are unloaded between batches, have the same results as with stock Spark. */
class TriggersSuite extends ComparisonSuite {
  private val operator = Operator.totals

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
    test(s"with trigger $name each run continues from the one before, checkpoint format version $version") {
      val runs = inFormat(version, stock, ours).map(endingRuns(_, trigger))
      assert(runs.head._2.size == batches.size)
      assert(runs(1)._2 == runs.head._2)
      assertInLog(runs(1)._1, runs.head._2.keySet)
    }

  test("with a processing time trigger batches without data remove state, and are in the log too") {
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
      val playing = new Playing(operator, contender, fresh(contender.name))
      val seen = new ConcurrentLinkedQueue[Long]
      def look(batch: DataFrame): Unit = {
        val kept = batch.persist()
        // User code may change the job group, which does not affect how the run is found.
        playing.session.sparkContext.setJobGroup("mine", "my own jobs")
        seen.add(kept.count()): Unit
        seen.add(kept.agg(sum("count")).head().getLong(0)): Unit
        kept.unpersist(): Unit
      }
      playing.play(batches.take(2), look)
      playing.play(batches.drop(2), look)
      (playing.checkpoint, playing.output, seen.asScala.toSeq)
    }
    assert(outcomes(1)._2 == outcomes.head._2 && outcomes(1)._3 == outcomes.head._3)
    assertInLog(outcomes(1)._1, Set(0, 1, 2))
  }

  /** As Spark Connect and pools do: the thread has none of the properties that Spark sets on the query's thread. */
  private def onAnotherThread(context: SparkContext)(work: => Unit): Unit = {
    val done = Future {
      context.setLocalProperties(new Properties)
      work
    }(ExecutionContext.fromExecutor(new Thread(_).start()))
    Await.result(done, 1.minute)
  }

  private val join = Operator(
    "inner",
    Joins.join("inner"),
    configuration = Joins.format(SparkFacts.JoinFormats.max),
    readsBoth = true
  )

  for ((name, operator, version) <- Seq(("an aggregation", Operator.totals, 1), ("a join", join, 2)))
    test(s"foreachBatch whose jobs run on another thread has the state of $name in the log, as on the query's own") {
      val outcomes = inFormat(version, stock, ours).map { contender =>
        val own = session(contender)
        operator.configuration.foreach { case (key, value) => own.conf.set(key, value) }
        val inputs = new Inputs(own)
        val checkpoint = fresh(contender.name)
        val seen = new ConcurrentLinkedQueue[(Long, Long)]
        (batches :+ batches.head).foreach { batch =>
          inputs.left.addData(batch._1)
          inputs.right.addData(batch._2)
          operator.build(inputs).writeStream.outputMode(operator.mode).trigger(Trigger.AvailableNow())
            .option("checkpointLocation", checkpoint.toString)
            .foreachBatch { (batch: DataFrame, id: Long) =>
              onAnotherThread(own.sparkContext)(seen.add((id, batch.count())): Unit)
            }.start().awaitTermination()
        }
        (checkpoint, seen.asScala.toSeq)
      }
      assert(outcomes(1)._2 == outcomes.head._2)
      assertInLog(outcomes(1)._1, outcomes.head._2.map(_._1).toSet)
      if (SparkFacts.LogsSnapshots)
        assert(LocalFiles.below(outcomes(1)._1.resolve("state")).filter(_.endsWith(".zip")) == Nil)
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
}
