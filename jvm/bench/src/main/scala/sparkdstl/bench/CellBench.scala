// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.streaming.StreamingQuery

/** Measures one cell of the comparison. */
object CellBench {

  def run(spec: CellSpec): Unit =
    BenchSession.use(spec)((spark, recorder) => new CellBench(spec, spark, recorder).run())
}

/** One contender's query, and the stream of its input. */
private final case class Running(contender: Contender, query: StreamingQuery, ticks: MemoryStream[Long])

private final class CellBench(spec: CellSpec, spark: SparkSession, recorder: Recorder) {

  /** All contenders run, and each does its batches of a turn while the others wait; the first one changes with the turn. */
  def run(): Unit = {
    val all = spec.contenders.map(Contender.named).map { contender =>
      val ticks = MemoryStream[Long](Encoders.scalaLong, BenchSession.of(spec, contender, spark))
      val result = Workload.over(ticks, spec.query)
      Running(contender, BenchSession.start(spec, contender, result, isLocal = spec.delays.isEmpty), ticks)
    }
    def everyOne(rounds: Range): Unit = rounds.grouped(spec.turn).foreach { turn =>
      val first = math.floorMod(math.floorDiv(turn.head, spec.turn), all.size)
      (all.drop(first) ++ all.take(first)).foreach(running => turn.foreach(batch(running, _)))
      BenchMain.done(turn.last + spec.warmup + 1)
    }
    // Opening stores and compiling code are not measured: storage has delays only afterwards.
    everyOne(-spec.warmup until 0)
    DelayedFileSystem.delayFromNow(spec.delays)
    val before = DelayedFileSystem.requests
    everyOne(0 until spec.rounds)
    recorder.requests(Asked.since(before, DelayedFileSystem.requests))
    DelayedFileSystem.delayFromNow(None)
    all.foreach(_.query.stop())
  }

  private def batch(running: Running, round: Int): Unit = {
    running.ticks.addData(round.toLong + spec.warmup): Unit
    val before = DelayedFileSystem.requestsOf(running.contender.name)
    running.query.processAllAvailable()
    // Requests while this batch ran: those of background work between batches are not counted.
    val requests = Asked.since(before, DelayedFileSystem.requestsOf(running.contender.name)).filter(_._2.count > 0)
    val newest = running.query.recentProgress.filter(_.numInputRows > 0).last
    if (newest.batchId != round + spec.warmup)
      throw new IllegalStateException(s"round $round of ${running.contender.name} was batch ${newest.batchId}")
    if (round >= 0) recorder.batch(running.contender, newest, requests)
  }
}
