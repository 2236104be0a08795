// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.apache.spark.sql.{DataFrame, Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.dstl.{BytesInFlight, ListenerBus}
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress, Trigger}

/** Measures one cell of the comparison. */
object CellBench {

  def run(spec: CellSpec): Unit =
    BenchSession.use(spec)((spark, recorder) => new CellBench(spec, spark, recorder).run())
}

/** One contender's query, and the stream of its input. */
private final case class Running(contender: Contender, query: StreamingQuery, ticks: Option[MemoryStream[Long]]) {

  private val inFlight = Option.when(contender.usesLog)(new BytesInFlight)

  def peakInFlight: Long = inFlight.fold(0L)(_.peak)

  def stop(): Unit = {
    inFlight.foreach(_.close())
    query.stop()
  }
}

private final class CellBench(spec: CellSpec, spark: SparkSession, recorder: Recorder) {
  private val cpu = new TaskCpu(spec.warmup.toLong)
  private val contenders = spec.contenders.map(Contender.named)

  def run(): Unit = {
    spark.sparkContext.addSparkListener(cpu)
    spec.mode match {
      case "turns" => turns()
      case "endless" => contenders.foreach(alone(_, Trigger.ProcessingTime(0)))
      case "paced" => contenders.foreach(alone(_, Trigger.ProcessingTime(spec.intervalMs)))
      case other => throw new IllegalArgumentException(s"no mode is named $other; there are turns, endless and paced")
    }
  }

  /** All contenders run, and each does its batches of a turn while the others wait; the first one changes with the turn. */
  private def turns(): Unit = {
    val all = contenders.map { contender =>
      val session = BenchSession.of(spec, contender, spark)
      val ticks = MemoryStream[Long](Encoders.scalaLong, session)
      Running(contender, start(contender, Workload.over(ticks, spec.query), Trigger.ProcessingTime(0)), Some(ticks))
    }
    def everyOne(rounds: Range): Unit = rounds.grouped(spec.turn).foreach { turn =>
      val first = math.floorMod(math.floorDiv(turn.head, spec.turn), all.size)
      (all.drop(first) ++ all.take(first)).foreach(running => turn.foreach(batch(running, _)))
      progress(turn.last)
    }
    // Opening stores and compiling code are not measured: storage has delays only afterwards.
    everyOne(-spec.warmup until 0)
    val before = countFromNow()
    everyOne(0 until spec.rounds)
    report(all, before)
    all.foreach(_.stop())
  }

  private def batch(running: Running, round: Int): Unit = {
    running.ticks.get.addData(round.toLong + spec.warmup): Unit
    spec.stalls.get(round.toString).foreach(millis => DelayedFileSystem.stall(millis.toLong))
    val before = DelayedFileSystem.requestsOf(running.contender.name)
    if (spec.trace) DelayedFileSystem.trace()
    running.query.processAllAvailable()
    // Requests while this batch ran: those of background work between batches are not counted.
    val requests = DelayedFileSystem.requestsOf(running.contender.name).map { case (kind, count) =>
      kind -> (count - before.getOrElse(kind, Asked.None))
    }.filter(_._2.count > 0)
    val paths = DelayedFileSystem.traced(running.contender.name)
    val newest = running.query.recentProgress.filter(_.numInputRows > 0).last
    if (newest.batchId != round + spec.warmup)
      throw new IllegalStateException(s"round $round of ${running.contender.name} was batch ${newest.batchId}")
    if (round >= 0) recorder.batch(running.contender, round, newest, requests, paths)
  }

  /** A contender that has the machine to itself, with a source that always has a next batch. */
  private def alone(contender: Contender, trigger: Trigger): Unit = {
    val session = BenchSession.of(spec, contender, spark)
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", (spec.rounds + spec.warmup + 100).toString)
    val running = Running(contender, start(contender, Workload.endless(session, spec.query), trigger), None)
    def wait(batches: Int): Seq[StreamingQueryProgress] = {
      var seen = Seq.empty[StreamingQueryProgress]
      while (seen.size < batches) {
        running.query.exception.foreach(throw _)
        Thread.sleep(100)
        seen = running.query.recentProgress.filter(_.numInputRows > 0).toSeq
        progress(seen.size - spec.warmup - 1)
      }
      seen
    }
    wait(spec.warmup): Unit
    val before = countFromNow()
    wait(spec.warmup + 1 + spec.rounds).drop(spec.warmup + 1).foreach { progress =>
      recorder.batch(contender, progress.batchId.toInt - spec.warmup, progress, Map.empty, Nil)
    }
    report(Seq(running), before)
    running.stop()
  }

  private def start(contender: Contender, result: DataFrame, trigger: Trigger): StreamingQuery =
    BenchSession.start(spec, contender, result, trigger, isLocal = spec.delays.isEmpty)

  private def countFromNow(): Map[(String, String, String), Asked] = {
    DelayedFileSystem.delayFromNow(spec.delays)
    DelayedFileSystem.requests
  }

  private def report(all: Seq[Running], before: Map[(String, String, String), Asked]): Unit = {
    recorder.requests(DelayedFileSystem.requests.map { case (key, asked) =>
      key -> (asked - before.getOrElse(key, Asked.None))
    })
    DelayedFileSystem.delayFromNow(None)
    ListenerBus.drain(spark)
    all.foreach { running =>
      recorder.taskCpu(running.contender, cpu.of(running.query.runId.toString))
      recorder.peakInFlight(running.contender, running.peakInFlight)
    }
  }

  private def progress(round: Int): Unit = BenchMain.done(round + spec.warmup + 1)
}
