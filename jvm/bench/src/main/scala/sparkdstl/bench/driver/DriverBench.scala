// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.driver

import java.util.UUID

import scala.concurrent.{Await, Future}
import scala.concurrent.duration._

import sparkdstl.bench.{BenchMain, DriverLoad, DriverSpec, Recorder}
import sparkdstl.log.format.{CommitEntry, CommittedSegment, EntryLink, Writer}
import sparkdstl.log.transport.{ExecutorLink, FromDriver, MessageCodec, RunId, ToDriver, ToExecutor}

import org.apache.spark.sql.execution.streaming.state.dstl.{EndpointFigures, MeasuredEndpoint}

/**
 * Measures the driver's side alone, without Spark jobs.
 *
 * Parts: `direct` hands messages to the run on one thread, with encoding and decoding; `endpoint` sends them from another
 * process through Spark's RPC; `memory` commits many batches and measures the driver's heap; in `snapshots` all stores carry
 * a snapshot at once, until entries hold them all.
 */
object DriverBench {
  private[driver] type Emit = Map[String, Any] => Unit

  def run(spec: DriverSpec): Unit = {
    val recorder = new Recorder(spec.output)
    var lines = 0
    def emit(values: Map[String, Any]): Unit = {
      recorder.write(values)
      lines += 1
      BenchMain.done(lines)
    }
    try spec.part match {
        case "direct" => new DirectPart(emit).run(spec.loads)
        case "endpoint" => new EndpointPart(emit).run(spec.loads)
        case "memory" => spec.loads.foreach(new MemoryPart(emit).run)
        case "snapshots" => spec.loads.foreach(new SnapshotsPart(emit).run)
        case other => throw new IllegalArgumentException(s"no part is named $other")
      }
    finally recorder.close()
  }

  private[driver] def described(load: SealLoad): Map[String, Any] = Map(
    "tasks" -> load.tasks,
    "stores" -> load.tasks * load.stores,
    "bytesPerStore" -> load.bytes,
    "inlineStoresPerTask" -> load.inlineStores,
    "formatVersion" -> (if (load.checkpointIds) 2 else 1)
  )

  /** Commits the batch; returns its time and processor time in milliseconds. */
  private[driver] def commit(run: BenchedRun, batch: Long, load: SealLoad): Map[String, Any] = {
    val cpu = ProcessFigures.cpuMillis
    val millis = run.commit(batch, load)
    Map("commitMs" -> millis, "commitCpuMs" -> (ProcessFigures.cpuMillis - cpu))
  }

  /** Milliseconds that encoding the batch's commit entry takes. */
  private[driver] def encodeMillis(load: SealLoad, batch: Long): Double = {
    val segments = for {
      task <- (0 until load.tasks).toVector
      segment <- load.seal(batch, task).segments
    } yield CommittedSegment(segment.key, load.attempt(batch, task), Vector(Left(new Array[Byte](load.bytes))))
    val content = load.sparkEntry(batch)
    val writer = Writer(SealLoad.Run, 1, "localhost", "benchmark")
    val began = System.nanoTime()
    CommitEntry.encode(content, batch, EntryLink(UUID.randomUUID(), None), writer, None, segments): Unit
    (System.nanoTime() - began) / 1e6
  }
}

/** Executors that accept every message and do nothing. */
private object DeafExecutors extends ExecutorLink {
  override def tell(executor: String, run: RunId, message: ToExecutor): Future[Unit] = Future.unit
}

/** One thread hands in all messages, one after another. */
private final class DirectPart(emit: DriverBench.Emit) {

  def run(cases: Seq[DriverLoad]): Unit =
    cases.foreach { spec =>
      val run = new BenchedRun(DeafExecutors)
      try Seq.range(0, Batches).foreach(batch => measure(run, batch.toLong, run.load(spec)))
      finally run.close()
    }

  private def measure(run: BenchedRun, batch: Long, load: SealLoad): Unit = {
    val id = run.coordinator.id
    val messages = (0 until load.tasks).map(task => load.executor(task) -> MessageCodec.encode(load.seal(batch, task)))
    val uploads = load.uploaded(batch).map { case (executor, message) => executor -> MessageCodec.encode(message) }
    def handIn(all: Seq[(String, Array[Byte])]): Unit = all.foreach { case (executor, bytes) =>
      val answer = Await.result(run.runs.answer(executor, id, MessageCodec.decodeToDriver(bytes)), 1.minute)
      DirectPart.check(answer)
      MessageCodec.encode(answer): Unit
    }
    ProcessFigures.resetPeakHeap()
    val (began, cpu) = (System.nanoTime(), ProcessFigures.cpuMillis)
    handIn(messages)
    handIn(uploads)
    val (takeMillis, cpuMillis) = ((System.nanoTime() - began) / 1e6, ProcessFigures.cpuMillis - cpu)
    val committed = DriverBench.commit(run, batch, load)
    if (batch == Batches - 1) {
      emit(DriverBench.described(load) ++ committed ++ Map(
        "takeMs" -> takeMillis,
        "cpuMs" -> cpuMillis,
        "encodeMs" -> DriverBench.encodeMillis(load, batch),
        "peakHeap" -> ProcessFigures.peakHeap
      ))
    }
  }

  private val Batches = 4
}

private object DirectPart {
  def check(answer: FromDriver): Unit = answer match {
    case _: FromDriver.Accepted | FromDriver.Noted =>
    case other => throw new IllegalStateException(s"the driver answered $other")
  }
}

/** Another process sends all messages through Spark's RPC and asks an unrelated endpoint meanwhile. */
private final class EndpointPart(emit: DriverBench.Emit) {

  def run(cases: Seq[DriverLoad]): Unit = {
    val endpoint = new MeasuredEndpoint
    try
      cases.foreach { spec =>
        val run = new BenchedRun(endpoint.executors)
        endpoint.use(run.runs)
        try {
          val load = run.load(spec)
          (0 until Batches).foreach(batch => measure(endpoint, run, batch.toLong, load, spec.inFlight))
        } finally run.close()
      }
    finally endpoint.close()
  }

  private def measure(endpoint: MeasuredEndpoint, run: BenchedRun, batch: Long, load: SealLoad, inFlight: Int): Unit = {
    endpoint.prepare(batch, load)
    val idle = ProcessFigures.liveHeap()
    ProcessFigures.resetPeakHeap()
    val cpu = ProcessFigures.cpuMillis
    val figures: EndpointFigures = endpoint.send(inFlight)
    val cpuMillis = ProcessFigures.cpuMillis - cpu
    val peak = ProcessFigures.peakHeap
    val held = ProcessFigures.liveHeap() - idle
    val committed = DriverBench.commit(run, batch, load)
    if (batch == Batches - 1) {
      emit(DriverBench.described(load) ++ committed ++ Map(
        "inFlight" -> inFlight,
        "takeMs" -> figures.takeMillis,
        "cpuMs" -> cpuMillis,
        "encodeMs" -> DriverBench.encodeMillis(load, batch),
        "peakHeap" -> peak,
        "heldHeap" -> held,
        "ask" -> figures.asks,
        "idlePing" -> figures.idlePings,
        "ping" -> figures.pings
      ))
    }
  }

  private val Batches = 4
}

/** Commits many batches, of which none is deleted. */
private final class MemoryPart(emit: DriverBench.Emit) {

  def run(spec: DriverLoad): Unit = {
    val before = ProcessFigures.liveHeap()
    val run = new BenchedRun(DeafExecutors)
    val load = run.load(spec)
    (0 until spec.batches).foreach { number =>
      val batch = number.toLong
      take(run, load, batch)
      if (number == 0 || number == spec.batches - 1 || (number + 1) % 100 == 0) {
        val sealedHeap = ProcessFigures.liveHeap()
        run.commit(batch, load): Unit
        emit(DriverBench.described(load) ++ Map(
          "batches" -> (number + 1),
          "before" -> before,
          "sealed" -> (sealedHeap - before),
          "committed" -> (ProcessFigures.liveHeap() - before)
        ))
      } else run.commit(batch, load): Unit
      // Spark deletes old entries; the log keeps them, because each store still needs them.
      if (number >= RetainedBySpark)
        Await.result(run.coordinator.deleteEntry(batch - RetainedBySpark), 1.minute)
    }
    run.close()
  }

  private def take(run: BenchedRun, load: SealLoad, batch: Long): Unit = {
    val id = run.coordinator.id
    def handIn(executor: String, message: ToDriver): Unit = {
      val received = MessageCodec.decodeToDriver(MessageCodec.encode(message))
      DirectPart.check(Await.result(run.runs.answer(executor, id, received), 1.minute))
    }
    (0 until load.tasks).foreach(task => handIn(load.executor(task), load.seal(batch, task)))
    load.uploaded(batch).foreach { case (executor, message) => handIn(executor, message) }
    // Once, as a store's maintenance does: the store needs all entries since its low-water mark.
    if (batch == 1) {
      val marks = for (task <- 0 until load.tasks; store <- 0 until load.stores)
        yield load.key(batch, task, store).storeDirectory -> 1L
      marks.toVector.grouped(1000).foreach(some => handIn("1", ToDriver.Release(some)))
    }
  }

  private val RetainedBySpark = 100
}

/** The worst case: all stores finish a snapshot at once, and carry it with each seal until the driver takes it. */
private final class SnapshotsPart(emit: DriverBench.Emit) {
  import SnapshotsPart._

  def run(spec: DriverLoad): Unit = {
    val run = new BenchedRun(DeafExecutors)
    try {
      val load = run.load(spec)
      val bytes = spec.snapshotBytes
      seal(run, load, 0, bytes, Set.empty): Unit
      run.commit(0, load): Unit
      val all = (for (task <- 0 until load.tasks; store <- 0 until load.stores) yield (task, store)).toSet
      val rounds = Iterator.unfold((all, 1L)) { case (left, batch) =>
        Option.when(left.nonEmpty) {
          val round = measure(run, load, batch, bytes, left)
          (round, (round.left, batch + 1))
        }
      }.toVector
      emit(DriverBench.described(load) ++ Map(
        "batches" -> rounds.size,
        "namedByOne" -> rounds.map(_.named).max,
        "firstTakeMs" -> rounds.head.takeMillis,
        "lastTakeMs" -> rounds.last.takeMillis,
        "commitMs" -> rounds.map(_.commitMillis).sorted.apply(rounds.size / 2),
        "peakHeap" -> rounds.map(_.peakHeap).max,
        "carriedBytes" -> rounds.map(round => (round.left.size + round.named).toLong * bytes).sum
      ))
    } finally run.close()
  }

  private def measure(run: BenchedRun, load: SealLoad, batch: Long, bytes: Int, offered: Set[(Int, Int)]): Round = {
    ProcessFigures.resetPeakHeap()
    val (left, takeMillis) = seal(run, load, batch, bytes, offered)
    val commitMillis = run.commit(batch, load)
    val named = run.coordinator.barrier.fold(0)(_.snapshots)
    if (named != offered.size - left.size)
      throw new IllegalStateException(s"$named snapshots are named, and ${offered.size - left.size} were taken")
    Round(left, named, takeMillis, commitMillis, ProcessFigures.peakHeap)
  }

  /** The snapshots that were not taken, and the time in milliseconds. */
  private def seal(
      run: BenchedRun,
      load: SealLoad,
      batch: Long,
      bytes: Int,
      offered: Set[(Int, Int)]
  ): (Set[(Int, Int)], Double) = {
    val ofTasks = offered.groupMap(_._1)(_._2)
    var nanos = 0L
    val notTaken = (0 until load.tasks).flatMap { task =>
      val carried = load.snapshots(task, ofTasks.getOrElse(task, Nil), bytes)
      val message = MessageCodec.encode(load.seal(batch, task).copy(carried = carried))
      val began = System.nanoTime()
      val received = MessageCodec.decodeToDriver(message)
      val answer = Await.result(run.runs.answer(load.executor(task), run.coordinator.id, received), 1.minute)
      nanos += System.nanoTime() - began
      answer match {
        case FromDriver.Accepted(_, notTaken) => notTaken.map(_._1)
        case other => throw new IllegalStateException(s"the driver answered $other")
      }
    }.toSet
    (offered.filter { case (task, store) => notTaken(load.key(batch, task, store).storeDirectory) }, nanos / 1e6)
  }
}

private object SnapshotsPart {

  /** A batch: the stores whose snapshots were not taken in it, and what was measured. */
  final case class Round(left: Set[(Int, Int)], named: Int, takeMillis: Double, commitMillis: Double, peakHeap: Long)
}
