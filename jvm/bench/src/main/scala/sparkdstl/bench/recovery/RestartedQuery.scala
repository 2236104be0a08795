// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.recovery

import sparkdstl.bench._

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress}

/** A query that any process can restart: its input is generated. */
private final class RestartedQuery(spec: RecoverySpec, spark: SparkSession) {
  val contender: Contender = Contender.named(spec.contender)
  private val session = BenchSession.of(spec, contender, spark)

  def configure(entries: (String, String)*): Unit = entries.foreach { case (key, value) =>
    session.conf.set(key, value)
  }

  /**
   * Starts the query, of which `done` batches were run before, runs that many more and stops it.
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
   * Starts the query, of which `done` batches were run before, and runs one more.
   *
   * @param goesOn evaluated after each batch: whether another one is run
   */
  def runWhile(done: Int)(goesOn: => Boolean): StreamingQueryProgress = running(done) { query =>
    while (goesOn) query.batch()
    query.progress
  }

  /** Starts the query, of which `done` batches were run before, runs one more, and stops it after `use`. */
  def running[T](done: Int)(use: RunningQuery => T): T = {
    val ticks = MemoryStream[Long](Encoders.scalaLong, session)
    def give(batch: Int): Unit = ticks.addData(spec.ticks(batch).map(_.toLong)): Unit
    // The source offers again what it offered before the restart.
    (0 to done).foreach(give)
    val query = BenchSession.start(spec, contender, Workload.over(ticks, spec.query))
    try {
      query.processAllAvailable()
      use(new RunningQuery(query, done + 1, give))
    } finally query.stop()
  }
}

/** Runs batch by batch. */
private final class RunningQuery(query: StreamingQuery, first: Int, give: Int => Unit) {
  private var next = first

  /** Provides the input of the next batch and waits for its end. */
  def batch(): Unit = {
    give(next)
    next += 1
    query.processAllAvailable()
  }

  /** Of the newest batch. */
  def progress: StreamingQueryProgress = query.recentProgress.filter(_.numInputRows > 0).last
}
