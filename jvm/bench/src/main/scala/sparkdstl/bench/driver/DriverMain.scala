package sparkdstl.bench.driver

import java.io.PrintWriter
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.UUID

import scala.concurrent.{Await, Future}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode

import sparkdstl.log.format.{CommitEntry, CommittedSegment, EntryLink, Writer}
import sparkdstl.log.transport.{ExecutorLink, FromDriver, MessageCodec, RunId, ToDriver, ToExecutor}

import org.apache.spark.sql.execution.streaming.state.dstl.{EndpointFigures, MeasuredEndpoint}

/**
 * Measures the driver's side alone, without Spark jobs: `DriverMain <specification.json>`. Writes one JSON object a line.
 *
 * Parts: `direct` hands messages to the run on one thread, with what encoding and decoding costs; `endpoint` sends them from
 * another process through Spark's RPC; `memory` commits many batches and looks what the driver holds; `snapshots` has all stores
 * carry a snapshot at once, until entries hold them all.
 */
object DriverMain {
  private val json = new ObjectMapper

  def main(arguments: Array[String]): Unit = {
    val spec = json.readTree(Files.readAllBytes(Path.of(arguments.head)))
    val out = new PrintWriter(spec.get("output").asText, UTF_8)
    def emit(node: ObjectNode): Unit = {
      out.println(node.toString)
      out.flush()
      println(s"done ${node.get("part").asText}")
    }
    try spec.get("cases").elements.asScala.toSeq.groupBy(_.get("part").asText).foreach {
        case ("direct", cases) => new DirectPart(emit).run(cases)
        case ("endpoint", cases) => new EndpointPart(emit).run(cases)
        case ("memory", cases) => cases.foreach(new MemoryPart(emit).run)
        case ("snapshots", cases) => cases.foreach(new SnapshotsPart(emit).run)
        case (other, _) =>
          throw new IllegalArgumentException(s"no part is named $other; there are direct, endpoint, memory, snapshots")
      }
    finally out.close()
  }

  private[driver] def node(part: String, load: SealLoad): ObjectNode = json.createObjectNode().put("part", part)
    .put("tasks", load.tasks).put("stores", load.tasks * load.stores).put("bytesPerStore", load.bytes)
    .put("inlineStoresPerTask", load.inlineStores).put("formatVersion", if (load.checkpointIds) 2 else 1)

  private[driver] def loadOf(spec: JsonNode, run: BenchedRun): SealLoad = run.load(
    spec.get("tasks").asInt,
    spec.get("storesPerTask").asInt,
    spec.get("bytesPerStore").asInt,
    spec.get("formatVersion").asInt == 2
  )

  /** Milliseconds that encoding the batch's commit entry takes. */
  private[driver] def encodeMillis(load: SealLoad, batch: Long): (Double, Long) = {
    val segments = for {
      task <- (0 until load.tasks).toVector
      segment <- load.seal(batch, task).segments
    } yield CommittedSegment(segment.key, load.attempt(batch, task), Vector(Left(new Array[Byte](load.bytes))))
    val content = load.sparkEntry(batch)
    val writer = Writer(SealLoad.Run, 1, "localhost", "benchmark")
    val began = System.nanoTime()
    val entry = CommitEntry.encode(content, batch, EntryLink(UUID.randomUUID(), None), writer, None, segments)
    ((System.nanoTime() - began) / 1e6, entry.payload.length)
  }
}

/** Executors that take everything that they are told, and do nothing. */
private object DeafExecutors extends ExecutorLink {
  override def tell(executor: String, run: RunId, message: ToExecutor): Future[Unit] = Future.unit
}

/** One thread hands in all messages, one after another. */
private final class DirectPart(emit: ObjectNode => Unit) {

  def run(cases: Seq[JsonNode]): Unit =
    // Each twice: the first time compiles.
    cases.foreach { spec =>
      val run = new BenchedRun(DeafExecutors)
      try Seq.range(0, Batches).foreach(batch => measure(run, batch.toLong, DriverMain.loadOf(spec, run)))
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
    val commitCpu = ProcessFigures.cpuMillis
    val commitMillis = run.commit(batch, load)
    val commitCpuMillis = ProcessFigures.cpuMillis - commitCpu
    if (batch == Batches - 1) {
      val (encodeMillis, entryBytes) = DriverMain.encodeMillis(load, batch)
      emit(DriverMain.node(
        "direct",
        load
      ).put("takeMs", takeMillis).put("cpuMs", cpuMillis).put("commitMs", commitMillis)
        .put(
          "commitCpuMs",
          commitCpuMillis
        ).put("encodeMs", encodeMillis).put("inlineEntryBytes", entryBytes).put("peakHeap", ProcessFigures.peakHeap))
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

/** Another process sends all messages through Spark's RPC, so many at a time, and asks an unrelated endpoint meanwhile. */
private final class EndpointPart(emit: ObjectNode => Unit) {

  def run(cases: Seq[JsonNode]): Unit = {
    val endpoint = new MeasuredEndpoint
    try
      cases.foreach { spec =>
        val run = new BenchedRun(endpoint.executors)
        endpoint.use(run.runs)
        try {
          val load = DriverMain.loadOf(spec, run)
          (0 until Batches).foreach(batch => measure(endpoint, run, batch.toLong, load, spec.get("inFlight").asInt))
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
    val commitCpu = ProcessFigures.cpuMillis
    val commitMillis = run.commit(batch, load)
    val commitCpuMillis = ProcessFigures.cpuMillis - commitCpu
    if (batch == Batches - 1) {
      val (encodeMillis, entryBytes) = DriverMain.encodeMillis(load, batch)
      val node = DriverMain.node("endpoint", load).put("inFlight", inFlight).put("takeMs", figures.takeMillis)
        .put("cpuMs", cpuMillis).put("commitMs", commitMillis).put("commitCpuMs", commitCpuMillis)
        .put("encodeMs", encodeMillis).put("inlineEntryBytes", entryBytes).put("peakHeap", peak).put("heldHeap", held)
      Seq("ask" -> figures.asks, "idlePing" -> figures.idlePings, "ping" -> figures.pings).foreach {
        case (name, times) =>
          node.putObject(name).put("p50", times.p50).put("p99", times.p99).put("max", times.max)
      }
      emit(node)
    }
  }

  private val Batches = 4
}

/** Commits many batches, of which none is deleted. */
private final class MemoryPart(emit: ObjectNode => Unit) {

  def run(spec: JsonNode): Unit = {
    val before = ProcessFigures.liveHeap()
    val run = new BenchedRun(DeafExecutors)
    val load = DriverMain.loadOf(spec, run)
    val batches = spec.get("batches").asInt
    (0 until batches).foreach { number =>
      val batch = number.toLong
      take(run, load, batch)
      if (number == 0 || number == batches - 1 || (number + 1) % 100 == 0) {
        val sealedHeap = ProcessFigures.liveHeap()
        run.commit(batch, load): Unit
        emit(DriverMain.node("memory", load).put("batches", number + 1).put("before", before)
          .put("sealed", sealedHeap - before).put("committed", ProcessFigures.liveHeap() - before))
      } else run.commit(batch, load): Unit
      // Spark asks for the deletion of old entries, and each store still needs them.
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
    // Once, as a store's maintenance does: it has a mark, and needs everything since.
    if (batch == 1) {
      val marks = for (task <- 0 until load.tasks; store <- 0 until load.stores)
        yield load.key(batch, task, store).storeDirectory -> 1L
      marks.toVector.grouped(1000).foreach(some => handIn("1", ToDriver.Release(some)))
    }
  }

  private val RetainedBySpark = 100
}

/** All stores finish a snapshot at once, the worst case, and carry it with each seal until the driver takes it. */
private final class SnapshotsPart(emit: ObjectNode => Unit) {
  import SnapshotsPart._

  def run(spec: JsonNode): Unit = {
    val run = new BenchedRun(DeafExecutors)
    try {
      val load = DriverMain.loadOf(spec, run)
      val bytes = spec.get("snapshotBytes").asInt
      seal(run, load, 0, bytes, Set.empty): Unit
      run.commit(0, load): Unit
      val all = (for (task <- 0 until load.tasks; store <- 0 until load.stores) yield (task, store)).toSet
      val rounds = Iterator.unfold((all, 1L)) { case (left, batch) =>
        Option.when(left.nonEmpty) {
          val round = measure(run, load, batch, bytes, left)
          (round, (round.left, batch + 1))
        }
      }.toVector
      emit(DriverMain.node("snapshots", load).put("snapshotBytes", bytes).put("batches", rounds.size)
        .put("named", rounds.map(_.named).sum).put("namedByOne", rounds.map(_.named).max)
        .put("firstTakeMs", rounds.head.takeMillis).put("lastTakeMs", rounds.last.takeMillis)
        .put(
          "commitMs",
          rounds.map(_.commitMillis).sorted.apply(rounds.size / 2)
        ).put("peakHeap", rounds.map(_.peakHeap).max)
        .put("carriedBytes", rounds.map(round => (round.left.size + round.named).toLong * bytes).sum))
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

  /** Which snapshots were not taken, and the milliseconds that it took. */
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
