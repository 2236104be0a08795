// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.driver

import java.util.UUID

import scala.concurrent.{Await, Future}
import scala.concurrent.duration._

import sparkdstl.bench.{BenchMain, DriverLoad, DriverSpec, ProcessFigures, Recorder}
import sparkdstl.log.format.{CommitEntry, CommittedSegment, EntryLink, Writer}
import sparkdstl.log.transport.{ExecutorLink, FromDriver, RunId, ToDriver, ToExecutor}

import org.apache.spark.sql.execution.streaming.state.dstl.{EndpointFigures, MeasuredEndpoint}

/**
 * Measures the driver's side alone, without Spark jobs.
 *
 * Parts: `direct` hands messages to the run on one thread; `endpoint` sends them from another process through Spark's RPC;
 * `memory` commits many batches and measures the driver's heap; in `snapshots` all stores carry a snapshot at once, until
 * entries hold them all.
 */
object DriverBench {
  private[driver] type Emit = Map[String, Any] => Unit

  /** Of a load, of which the last is measured. */
  private[driver] val Batches = 4

  def run(spec: DriverSpec): Unit = {
    val recorder = new Recorder(spec.output)
    var lines = 0
    def emit(values: Map[String, Any]): Unit = {
      recorder.write(values)
      lines += 1
      BenchMain.done(lines)
    }
    try spec.part match {
        case "direct" => spec.loads.foreach(new DirectPart(emit).run)
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

  def run(spec: DriverLoad): Unit = {
    val run = new BenchedRun(DeafExecutors)
    try {
      val load = run.load(spec)
      // The code of the batches before the last is not compiled yet.
      val millis = (0L until DriverBench.Batches.toLong).map { batch =>
        val took = (load.seals(batch) ++ load.uploaded(batch)).map { case (from, message) =>
          run.handIn(from, message)._2
        }.sum
        run.commit(batch, load): Unit
        took
      }
      emit(DriverBench.described(load) + ("takeMs" -> millis.last))
    } finally run.close()
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
          (0 until DriverBench.Batches).foreach(batch => measure(endpoint, run, batch.toLong, load))
        } finally run.close()
      }
    finally endpoint.close()
  }

  private def measure(endpoint: MeasuredEndpoint, run: BenchedRun, batch: Long, load: SealLoad): Unit = {
    endpoint.prepare(batch, load)
    val idle = ProcessFigures.liveHeap()
    val cpu = ProcessFigures.cpuMillis
    val figures: EndpointFigures = endpoint.send()
    val cpuMillis = ProcessFigures.cpuMillis - cpu
    val held = ProcessFigures.liveHeap() - idle
    val commitMillis = run.commit(batch, load)
    if (batch == DriverBench.Batches - 1) {
      emit(DriverBench.described(load) ++ Map(
        "takeMs" -> figures.takeMillis,
        "cpuMs" -> cpuMillis,
        "commitMs" -> commitMillis,
        "encodeMs" -> DriverBench.encodeMillis(load, batch),
        "heldHeap" -> held,
        "ask" -> figures.asks,
        "idlePing" -> figures.idlePings,
        "ping" -> figures.pings
      ))
    }
  }
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
    (load.seals(batch) ++ load.uploaded(batch)).foreach { case (from, message) => run.handIn(from, message) }
    // Once, as a store's maintenance does: the store needs all entries since its low-water mark.
    if (batch == 1) {
      val marks = for (task <- 0 until load.tasks; store <- 0 until load.stores)
        yield load.key(batch, task, store).storeDirectory -> 1L
      marks.toVector.grouped(1000).foreach(some => run.handIn("1", ToDriver.Release(some)))
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
      seal(run, load, 0, Set.empty): Unit
      run.commit(0, load): Unit
      val all = (for (task <- 0 until load.tasks; store <- 0 until load.stores) yield (task, store)).toSet
      val rounds = Iterator.unfold((all, 1L)) { case (left, batch) =>
        Option.when(left.nonEmpty) {
          val round = measure(run, load, batch, left)
          (round, (round.left, batch + 1))
        }
      }.toVector
      emit(DriverBench.described(load) ++ Map(
        "batches" -> rounds.size,
        "namedByOne" -> rounds.map(_.named).max,
        "firstTakeMs" -> rounds.head.takeMillis,
        "lastTakeMs" -> rounds.last.takeMillis,
        "carriedBytes" -> rounds.map(round => (round.left.size + round.named).toLong * SnapshotBytes).sum
      ))
    } finally run.close()
  }

  private def measure(run: BenchedRun, load: SealLoad, batch: Long, offered: Set[(Int, Int)]): Round = {
    val (left, takeMillis) = seal(run, load, batch, offered)
    run.commit(batch, load): Unit
    val named = run.coordinator.barrier.fold(0)(_.snapshots)
    if (named != offered.size - left.size)
      throw new IllegalStateException(s"$named snapshots are named, and ${offered.size - left.size} were taken")
    Round(left, named, takeMillis)
  }

  /** The snapshots that were not taken, and the time in milliseconds. */
  private def seal(
      run: BenchedRun,
      load: SealLoad,
      batch: Long,
      offered: Set[(Int, Int)]
  ): (Set[(Int, Int)], Double) = {
    val ofTasks = offered.groupMap(_._1)(_._2)
    val (answers, millis) = (0 until load.tasks).map { task =>
      val carried = load.snapshots(task, ofTasks.getOrElse(task, Nil), SnapshotBytes)
      run.handIn(load.executor(task), load.seal(batch, task).copy(carried = carried))
    }.unzip
    val notTaken = answers.collect { case FromDriver.Accepted(_, notTaken) => notTaken.map(_._1) }.flatten.toSet
    (offered.filter { case (task, store) => notTaken(load.key(batch, task, store).storeDirectory) }, millis.sum)
  }
}

private object SnapshotsPart {
  // Of a small store, as Spark packs what is no SST file.
  private val SnapshotBytes = 3800

  /** A batch: the stores whose snapshots were not taken in it, and what was measured. */
  final case class Round(left: Set[(Int, Int)], named: Int, takeMillis: Double)
}
