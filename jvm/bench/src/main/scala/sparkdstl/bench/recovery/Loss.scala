package sparkdstl.bench.recovery

import sparkdstl.bench.{Asked, DelayedFileSystem, Recorder}

import org.apache.spark.sql.SparkSession

/** Runs batches, has one of two executor processes die, and measures the next batch. Nobody takes snapshots meanwhile. */
private final class Loss(spec: RecoverySpec, spark: SparkSession) {
  private val executors = new Executors(spark, 2)

  def run(): Unit = {
    val query = new RestartedQuery(spec, spark)
    query.configure(SnapshotSettings.Never: _*)
    val done = spec.batchesBefore + spec.batchesSince
    // With one alone, that one would take all stores.
    executors.look(): Unit
    query.running(done) { running =>
      // The batch that started the query is not like those after it.
      val usual = Seq.fill(spec.batchesWarm - 1)(timed(running))
      val before = executors.look()
      val (lost, process) = before.minBy(_._1)
      val ofDriver = DelayedFileSystem.requests
      executors.kill(process.pid)
      val millis = timed(running)
      val progress = running.progress
      RecoveryMain.check(spec, progress, done + spec.batchesWarm)
      val since = difference(DelayedFileSystem.requests, ofDriver) +: executors.look().map { case (id, now) =>
        difference(now.requests, before.get(id).fold(Executors.NoRequests)(_.requests))
      }.toSeq
      println(s"executor $lost was lost")
      write { recorder =>
        recorder.recovery(spec.contender, millis, progress, usual)
        since.flatten.groupMapReduce(_._1)(_._2)(_ + _).foreach { case ((contender, request, file), asked) =>
          recorder.requests(contender, request, file, asked)
        }
      }
    }
  }

  /** From when a batch is given its input until it has ended. */
  private def timed(running: RunningQuery): Long = {
    val began = System.nanoTime()
    running.batch()
    (System.nanoTime() - began) / 1000000L
  }

  private def difference(now: Executors.Requests, before: Executors.Requests): Executors.Requests =
    now.map { case (kind, asked) => kind -> (asked - before.getOrElse(kind, Asked.None)) }

  private def write(lines: Recorder => Unit): Unit = {
    val recorder = new Recorder(spec.output)
    try lines(recorder)
    finally recorder.close()
  }
}

private object Loss {

  /** Has executors learn of the storage what this process knows from the specification. */
  def configuration(spec: RecoverySpec): Map[String, String] =
    if (spec.phase != RecoverySpec.Lose) Map.empty
    else Map("spark.hadoop." + DelayedFileSystem.SpecEntry -> spec.file.getAbsolutePath)
}
