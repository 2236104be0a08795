// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.apache.spark.sql.SparkSession

/** Measures one cell of the comparison. */
object CellBench {

  def run(spec: CellSpec): Unit =
    BenchSession.use(spec)((spark, recorder) => new CellBench(spec, spark, recorder).run())
}

private final class CellBench(spec: CellSpec, spark: SparkSession, recorder: Recorder) {

  /** All contenders run, and each does its batches of a turn while the others wait; the first one changes with the turn. */
  def run(): Unit = {
    val all = spec.contenders.map(Contender.named).map { contender =>
      val session = BenchSession.of(spec, contender, spark)
      contender -> new BenchedQuery(spec, contender, session, isLocal = spec.delays.isEmpty)
    }
    def everyOne(rounds: Range): Unit = rounds.grouped(spec.turn).foreach { turn =>
      val first = math.floorMod(math.floorDiv(turn.head, spec.turn), all.size)
      (all.drop(first) ++ all.take(first)).foreach { case (contender, query) =>
        turn.foreach(batch(contender, query, _))
      }
      BenchMain.done(turn.last + spec.warmup + 1)
    }
    // Opening stores and compiling code are not measured: storage has delays only afterwards.
    everyOne(-spec.warmup until 0)
    DelayedFileSystem.delayFromNow(spec.delays)
    val before = DelayedFileSystem.requests
    everyOne(0 until spec.rounds)
    recorder.requests(Asked.since(before, DelayedFileSystem.requests))
    DelayedFileSystem.delayFromNow(None)
    all.foreach(_._2.stop())
  }

  private def batch(contender: Contender, query: BenchedQuery, round: Int): Unit = {
    val before = DelayedFileSystem.requestsOf(contender.name)
    val cpuBefore = ProcessFigures.cpuMillis
    val progress = query.batch(Seq(round.toLong + spec.warmup))
    val cpuMillis = ProcessFigures.cpuMillis - cpuBefore
    // Requests while this batch ran: those of background work between batches are not counted.
    val requests = Asked.since(before, DelayedFileSystem.requestsOf(contender.name)).filter(_._2.count > 0)
    if (progress.batchId != round + spec.warmup)
      throw new IllegalStateException(s"round $round of ${contender.name} was batch ${progress.batchId}")
    if (round >= 0) recorder.batch(contender, progress, cpuMillis, requests)
  }
}
