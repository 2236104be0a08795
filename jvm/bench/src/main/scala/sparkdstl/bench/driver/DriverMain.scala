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

import org.apache.spark.sql.execution.streaming.state.dstl.{DoorFigures, MeasuredDoor}

/**
 * Measures the driver's side alone, without Spark jobs: `DriverMain <specification.json>`. Writes one JSON object a line.
 *
 * Parts: `direct` hands messages to the run on one thread, with what encoding and decoding costs; `endpoint` sends them from
 * another process through Spark's RPC; `memory` commits many batches and looks what the driver holds.
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
        case (other, _) =>
          throw new IllegalArgumentException(s"no part is named $other; there are direct, endpoint, memory")
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
    val door = new MeasuredDoor
    try
      cases.foreach { spec =>
        val run = new BenchedRun(door.executors)
        door.use(run.runs)
        try {
          val load = DriverMain.loadOf(spec, run)
          (0 until Batches).foreach(batch => measure(door, run, batch.toLong, load, spec.get("inFlight").asInt))
        } finally run.close()
      }
    finally door.close()
  }

  private def measure(door: MeasuredDoor, run: BenchedRun, batch: Long, load: SealLoad, inFlight: Int): Unit = {
    door.prepare(batch, load)
    val idle = ProcessFigures.liveHeap()
    ProcessFigures.resetPeakHeap()
    val cpu = ProcessFigures.cpuMillis
    val figures: DoorFigures = door.send(inFlight)
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
