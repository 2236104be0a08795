// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.wiring

import java.io.IOException

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{SegmentKey, Writer}
import sparkdstl.log.read.{EntryReader, FoundSegment, SegmentReader}
import sparkdstl.log.storage.StorageOperation.Read
import sparkdstl.log.transport.{DriverLink, FromDriver, RunId, SealedSegment, SnapshotPlace, ToExecutor}
import sparkdstl.log.upload.{DataFiles, LogUploader}
import sparkdstl.log.worker.{RunWorker, TaskWriter}
import sparkdstl.sim.model.Names

/** A segment that a task writes for one store. */
final case class WrittenSegment(key: SegmentKey, base: Option[Long], bytes: Array[Byte])

/** A run's side on an executor, wired like the adapter to Spark. */
final class ExecutorLog(val environment: ProcessEnvironment, executorName: String, val run: RunId, driver: DriverLink) {
  import environment.{location, options, runtime}
  private implicit val executor: ExecutionContext = environment.inline
  private val storage = environment.storage()

  val worker = new RunWorker(run, executorName, driver, uploader, uploader, options, runtime)

  val reader = new SegmentReader(
    storage,
    new EntryReader(
      storage,
      environment.constants.fetchLength,
      Some(environment.copies -> run.run),
      worker.entryLength
    ),
    environment.entries,
    environment.ranges,
    run.run
  )

  /** The writer of a task attempt; fails if the driver does not coordinate the run. */
  def task(attempt: Long, batch: Long, partitions: Int): Future[TaskWriter] =
    worker.task(attempt, batch, partitions).flatMap {
      case Some(task) => Future.successful(task)
      case None => Future.failed(new IOException(s"the driver does not coordinate ${run.run}"))
    }

  /** Writes the segments of a store, and names those that are in data files already. */
  def write(task: TaskWriter, segments: Vector[WrittenSegment], stored: Vector[SealedSegment]): Future[Unit] = {
    stored.foreach(task.addStored)
    segments.foldLeft(Future.unit)((before, segment) => before.flatMap(_ => write(task, segment)))
  }

  private def write(task: TaskWriter, written: WrittenSegment): Future[Unit] = {
    val segment = task.segment(written.key, written.base)
    val chunks = written.bytes.grouped(segment.chunkSize).toVector
    val (full, rest) =
      if (chunks.last.length == segment.chunkSize) (chunks, Array.emptyByteArray) else (chunks.init, chunks.last)
    full
      .foldLeft(Future.unit)((before, chunk) => before.flatMap(_ => segment.add(chunk)))
      .map(_ => task.end(segment, rest))
  }

  /** Gives up an attempt that may have written. Returns at once. */
  def giveUp(task: TaskWriter): Unit = {
    task.giveUp()
    worker.receive(ToExecutor.Drop(task.attempt, task.storeDirectories))
  }

  /** The content of a segment in the log or in a plain file; None if neither exists. */
  def read(key: SegmentKey): Future[Option[Array[Byte]]] = reader.open(key).flatMap {
    case Some(found) => content(found).map(Some(_))
    case None => readFile(key)
  }

  def readFile(key: SegmentKey): Future[Option[Array[Byte]]] = {
    val file = new Path(s"${Names.State}/${key.relativePath}")
    storage.read(file, Read(file, 1L << 20))
  }

  def content(found: FoundSegment): Future[Array[Byte]] =
    Future.sequence(found.segment.parts.indices.map(reader.part(found, _))).map(_.flatten.toArray)

  /** The versions of a store from the driver, or from the entries if the driver does not coordinate the run. */
  def versions(storeDirectory: String): Future[FromDriver.Versions] = worker.versions(storeDirectory).flatMap {
    case Some(versions) => Future.successful(versions)
    case None => reader.snapshots().map { list =>
        val held = list.held.filter(_.key.storeDirectory == storeDirectory)
        FromDriver.Versions(Vector.empty, held.map(SnapshotPlace.of), list.plainUpTo, 0L)
      }
  }

  def handle(message: ToExecutor): Future[Unit] = Future.successful(worker.receive(message))

  private def uploader(epoch: Long): LogUploader = {
    val instance = runtime.random.nextUuid().toString.take(8)
    new LogUploader(
      storage.log,
      location.base,
      new DataFiles(
        Writer(run.run, epoch, environment.process.name, environment.process.name),
        executorName,
        instance
      ),
      environment.memory,
      environment.discarder(storage.log),
      options,
      runtime,
      environment.uploadMetrics
    )
  }
}
