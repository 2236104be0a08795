package sparkdstl.bench.recovery

import java.io.File

import sparkdstl.bench.{BenchSession, DelayedFileSystem, Recorder}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.StreamingQueryProgress

/**
 * Measures the first batch of a query that is started again, in a process that has done nothing else:
 * `RecoveryMain <specification.json>`.
 *
 * The phase `prepare` makes the checkpoint, on storage that takes no time; `recover` runs one more batch on storage that
 * does, and writes what it took. `lose` is for an application with two executor processes: it runs some batches, kills one
 * of the processes, and writes what the next batch took.
 */
object RecoveryMain {

  def main(arguments: Array[String]): Unit = {
    val spec = RecoverySpec.read(new File(arguments.head))
    val spark = BenchSession.start(spec.root, spec.partitions, Loss.configuration(spec))
    try
      spec.phase match {
        case RecoverySpec.Prepare => new Preparation(spec, spark).run()
        case RecoverySpec.Lose => new Loss(spec, spark).run()
        case _ => new Recovery(spec, spark).run()
      }
    finally spark.stop()
  }

  /** Fails unless that batch is the one to measure. */
  def check(spec: RecoverySpec, progress: StreamingQueryProgress, batch: Int): Unit = if (progress.batchId != batch)
    throw new IllegalStateException(s"${spec.contender.name} ran batch ${progress.batchId} instead of $batch")
}

/** Runs the next batch of what was prepared, or the first one of a new query. */
private final class Recovery(spec: RecoverySpec, spark: SparkSession) {

  def run(): Unit = {
    val query = new RestartedQuery(spec, spark)
    val done = spec.batchesBefore + spec.batchesSince
    DelayedFileSystem.delayFromNow(spec.delays)
    val began = System.nanoTime()
    val (progress, millis) = query.run(done, 1)((System.nanoTime() - began) / 1000000L)
    RecoveryMain.check(spec, progress, done)
    val recorder = new Recorder(spec.output)
    try {
      recorder.recovery(spec.contender, millis, progress)
      DelayedFileSystem.requests.foreach { case ((contender, request, file), asked) =>
        recorder.requests(contender, request, file, asked)
      }
    } finally recorder.close()
  }
}
