package sparkdstl.bench

import java.io.File

import org.apache.spark.sql.{DataFrame, Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.dstl.{BytesInFlight, ListenerBus}
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress, Trigger}

/** Measures one cell of the benchmark: `CellMain <specification.json>`. Prints a line for each round that is done. */
object CellMain {

  def main(arguments: Array[String]): Unit = {
    val spec = CellSpec.read(new File(arguments.head))
    val spark = BenchSession.start(spec.root, spec.partitions)
    val recorder = new Recorder(spec.output)
    try new CellMain(spec, spark, recorder).run()
    finally {
      recorder.close()
      spark.stop()
    }
  }
}

/** One contender's query, and how to give it input. */
private final case class Running(contender: Contender, query: StreamingQuery, ticks: Option[MemoryStream[Long]]) {

  /** Only one of them has a log. */
  private val inFlight = Option.when(contender.usesLog)(new BytesInFlight)

  def peakInFlight: Long = inFlight.fold(0L)(_.peak)

  def stop(): Unit = {
    inFlight.foreach(_.close())
    query.stop()
  }
}

private final class CellMain(spec: CellSpec, spark: SparkSession, recorder: Recorder) {
  private val cpu = new TaskCpu(spec.warmup.toLong)

  def run(): Unit = {
    spark.sparkContext.addSparkListener(cpu)
    spec.mode match {
      case "turns" => turns()
      case "endless" => spec.contenders.foreach(alone(_, Trigger.ProcessingTime(0)))
      case "paced" => spec.contenders.foreach(alone(_, Trigger.ProcessingTime(spec.intervalMs)))
      case other => throw new IllegalArgumentException(s"no mode is named $other; there are turns, endless and paced")
    }
  }

  /** All contenders run, and each does its batches of a turn while the others wait; who begins changes with the turn. */
  private def turns(): Unit = {
    val all = spec.contenders.map { contender =>
      val session = sessionOf(contender)
      val ticks = MemoryStream[Long](Encoders.scalaLong, session)
      Running(contender, start(contender, Workload.over(ticks, spec.workload), Trigger.ProcessingTime(0)), Some(ticks))
    }
    def everyOne(rounds: Range): Unit = rounds.grouped(spec.turn).foreach { turn =>
      val first = math.floorMod(math.floorDiv(turn.head, spec.turn), all.size)
      (all.drop(first) ++ all.take(first)).foreach(running => turn.foreach(batch(running, _)))
      progress(turn.last)
    }
    // Stores are opened and code is compiled before storage has delays: they are not what is measured.
    everyOne(-spec.warmup until 0)
    val before = countFromNow()
    everyOne(0 until spec.rounds)
    report(all, before)
    all.foreach(_.stop())
  }

  private def batch(running: Running, round: Int): Unit = {
    running.ticks.get.addData(round.toLong + spec.warmup): Unit
    spec.stalls.get(round).foreach(DelayedFileSystem.stall)
    val before = DelayedFileSystem.requestsOf(running.contender.name)
    if (spec.trace) DelayedFileSystem.trace()
    running.query.processAllAvailable()
    // What was asked while this batch ran: background work between batches is not in it.
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
    val session = sessionOf(contender)
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", (spec.rounds + spec.warmup + 100).toString)
    val running = Running(contender, start(contender, Workload.endless(session, spec.workload), trigger), None)
    def wait(batches: Int): Seq[StreamingQueryProgress] = {
      var seen = Seq.empty[StreamingQueryProgress]
      while (seen.size < batches) {
        running.query.exception.foreach(throw _)
        Thread.sleep(100)
        seen = running.query.recentProgress.filter(_.numInputRows > 0).toSeq
        progress(seen.size - spec.warmup)
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
    result.writeStream.format("noop").outputMode(spec.workload.outputMode).trigger(trigger)
      .option("checkpointLocation", spec.checkpoint(contender)).start()

  private def sessionOf(contender: Contender): SparkSession = {
    val session = spark.newSession()
    (spec.confs ++ contender.configuration).foreach { case (key, value) => session.conf.set(key, value) }
    session.conf.set("spark.sql.shuffle.partitions", spec.partitions.toLong)
    session
  }

  private def countFromNow(): Map[(String, String, String), Asked] = {
    DelayedFileSystem.delayFromNow(spec.delays)
    DelayedFileSystem.requests
  }

  private def report(all: Seq[Running], before: Map[(String, String, String), Asked]): Unit = {
    DelayedFileSystem.requests.foreach { case (key @ (contender, request, file), asked) =>
      recorder.requests(contender, request, file, asked - before.getOrElse(key, Asked.None))
    }
    DelayedFileSystem.delayFromNow(None)
    ListenerBus.drain(spark)
    all.foreach { running =>
      recorder.taskCpu(running.contender, cpu.of(running.query.runId.toString))
      recorder.peakInFlight(running.contender, running.peakInFlight)
    }
  }

  private def progress(round: Int): Unit = println(s"round $round")
}
