package sparkdstl.bench.recovery

import sparkdstl.bench.{DelayedFileSystem, Workload}

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress, Trigger}

/** A query that is started again in any process: its input is made anew. */
private final class RestartedQuery(spec: RecoverySpec, spark: SparkSession) {
  private val session = spark.newSession()
  configure((spec.confs ++ spec.contender.configuration).toSeq: _*)
  configure("spark.sql.shuffle.partitions" -> spec.partitions.toString)

  def configure(entries: (String, String)*): Unit = entries.foreach { case (key, value) =>
    session.conf.set(key, value)
  }

  /**
   * Starts the query, of which `done` batches were run before, runs so many more and stops it.
   *
   * @param atTheEnd evaluated while the query still runs
   */
  def run[T](done: Int, batches: Int)(atTheEnd: => T): (StreamingQueryProgress, T) = {
    var left = batches
    var result = Option.empty[T]
    val progress = runWhile(done) {
      left -= 1
      if (left <= 0) result = Some(atTheEnd)
      left > 0
    }
    (progress, result.get)
  }

  /**
   * Starts the query, of which `done` batches were run before, runs one more and others until told to stop.
   *
   * @param goesOn asked after each batch
   */
  def runWhile(done: Int)(goesOn: => Boolean): StreamingQueryProgress = running(done) { query =>
    while (goesOn) query.batch()
    query.progress
  }

  /** Starts the query, of which `done` batches were run before, runs one more, and stops it once it was used. */
  def running[T](done: Int)(use: RunningQuery => T): T = {
    val ticks = MemoryStream[Long](Encoders.scalaLong, session)
    def give(batch: Int): Unit = ticks.addData(spec.ticks(batch).map(_.toLong)): Unit
    // What the source has given out before the restart, it has to have given out after it.
    (0 to done).foreach(give)
    val query = Workload.over(ticks, spec.workload).writeStream.format("noop")
      .outputMode(spec.workload.outputMode).trigger(Trigger.ProcessingTime(0))
      .option("checkpointLocation", s"${DelayedFileSystem.Scheme}://${spec.root}/${spec.contender.name}").start()
    try {
      query.processAllAvailable()
      use(new RunningQuery(query, done + 1, give))
    } finally query.stop()
  }
}

/** Runs batch by batch. */
private final class RunningQuery(query: StreamingQuery, first: Int, give: Int => Unit) {
  private var next = first

  /** Gives the next batch its input and waits for its end. */
  def batch(): Unit = {
    give(next)
    next += 1
    query.processAllAvailable()
  }

  /** Of the newest batch. */
  def progress: StreamingQueryProgress = query.recentProgress.filter(_.numInputRows > 0).last
}
