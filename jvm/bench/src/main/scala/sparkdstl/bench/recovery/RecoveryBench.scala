// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.recovery

import java.io.File
import java.util.concurrent.{CompletableFuture, TimeUnit}

import sparkdstl.bench._

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskStart}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.StreamingQueryProgress

/**
 * Measures the first batch of a query that is restarted, in a process that has done nothing else, or that has just restarted a
 * copy of the checkpoint.
 *
 * The phase `prepare` makes the checkpoint, on storage without delays; `recover` runs one more batch on storage with delays,
 * and records its time. `lose` is for an application with two executor processes: it runs some batches, kills one of the
 * processes, and records the time of the next batch.
 */
object RecoveryBench {

  def run(spec: RecoverySpec, file: File): Unit = {
    // Executors read root and delays of the storage from the same specification.
    val confs = if (spec.phase != "lose") Map.empty[String, String]
    else Map("spark.hadoop." + DelayedFileSystem.SpecEntry -> file.getAbsolutePath)
    BenchSession.use(spec, confs) { (spark, recorder) =>
      val query = new RestartedQuery(spec, spark)
      spec.phase match {
        case "prepare" => new Preparation(spec, query).run()
        case "recover" =>
          if (spec.warmSession) query.from(spec.batchesBefore + spec.batchesSince, suffix = "-copy")(_.next()): Unit
          recover(spec, query, recorder, firstTaskOf(spark))
        case "lose" => new Loss(spec, query, new Executors(spark, 2), recorder).run()
        case other => throw new IllegalArgumentException(s"no phase is named $other; there are prepare, recover, lose")
      }
    }
  }

  /** Runs the next batch of what was prepared, or the first one of a new query. */
  private def recover(spec: RecoverySpec, query: RestartedQuery, recorder: Recorder, firstTask: () => Long): Unit = {
    val done = spec.batchesBefore + spec.batchesSince
    val before = DelayedFileSystem.requests
    DelayedFileSystem.delayFromNow(spec.delays)
    val began = System.nanoTime()
    // Without the time of stopping the query.
    val (progress, ended) = query.from(done)(batches => (batches.next(), System.nanoTime()))
    check(spec, progress, done)
    val serial = SerialRequests.of(DelayedFileSystem.delayedRequests.filter(_.begun < firstTask()))
    recorder.recovery(query.contender, (ended - began) / 1000000L, serial = Some(serial.map(_.what)))
    recorder.requests(Asked.since(before, DelayedFileSystem.requests))
  }

  /** Begins to listen; returns the time at which the first task was launched, once one was. */
  private def firstTaskOf(spark: SparkSession): () => Long = {
    val launched = new CompletableFuture[Long]
    spark.sparkContext.addSparkListener(new SparkListener {
      override def onTaskStart(task: SparkListenerTaskStart): Unit = launched.complete(task.taskInfo.launchTime): Unit
    })
    () => launched.get(1, TimeUnit.MINUTES)
  }

  /** Fails unless that batch is the one to measure. */
  def check(spec: RecoverySpec, progress: StreamingQueryProgress, batch: Int): Unit = if (progress.batchId != batch)
    throw new IllegalStateException(s"${spec.contender} ran batch ${progress.batchId} instead of $batch")
}
