package sparkdstl.sim.wiring

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogLayout, SegmentKey, SegmentKind, Writer}
import sparkdstl.log.read.{EntryReader, FoundSegment, SegmentReader}
import sparkdstl.log.transport.{DriverLink, RunId, SealedPart, SealedSegment, SnapshotPlace, ToExecutor}
import sparkdstl.log.upload.{LogUploader, ObjectDiscarder, UploaderOptions}
import sparkdstl.log.worker.{DataFileEncoder, LocalStore, Offered, RunWorker, SegmentChunk, SnapshotUploads, TaskWriter}
import sparkdstl.sim.model.{Names, SnapshotPiece, SnapshotZip}
import sparkdstl.sim.spark.{ExecutorLog, WrittenSegment}

/** A run's side on an executor of the world. */
private[wiring] final class ProtocolExecutor(
    environment: ProcessEnvironment,
    name: String,
    run: RunId,
    driver: DriverLink,
    drop: (Option[Long], Seq[String]) => Unit,
    stores: Vector[String]
) extends ExecutorLog {
  import environment.{context, location, options}
  private implicit val executor: ExecutionContext = context.inline
  private val (storage, requests) = environment.storage()
  private val tasks = mutable.Map.empty[(Long, Long), TaskWriter]

  private val worker = new RunWorker(run, name, driver, uploader, uploader, options, context.runtime)
  stores.foreach { store =>
    worker.register(
      store,
      new LocalStore {
        override def drop(attempt: Long): Unit = ProtocolExecutor.this.drop(Some(attempt), Seq(store))
      }
    )
  }

  private val reader = new SegmentReader(
    location,
    new EntryReader(
      location,
      storage,
      options.commitTimeoutMs,
      4096,
      context.runtime,
      Some(environment.copies -> run.run)
    ),
    environment.entries,
    environment.ranges,
    run.run,
    storage,
    storage,
    options.commitTimeoutMs,
    context.runtime
  )

  override def seal(attempt: Long, batch: Long, partitions: Int, segments: Vector[WrittenSegment]): Future[Unit] =
    worker.task(attempt, batch, partitions).flatMap {
      case None => Future.failed(new IOException(s"the driver does not coordinate ${run.run}"))
      case Some(task) =>
        tasks((attempt, batch)) = task
        segments
          .foldLeft(Future.unit)((before, segment) => before.flatMap(_ => write(task, segment)))
          .flatMap(_ => task.seal())
    }

  private def plain(key: SegmentKey): Path = new Path(s"${Names.State}/${key.relativePath}")

  private def write(task: TaskWriter, written: WrittenSegment): Future[Unit] = {
    val segment = task.segment(written.key, written.base)
    val chunks = written.bytes.grouped(segment.chunkSize).toVector
    val (full, rest) =
      if (chunks.last.length == segment.chunkSize) (chunks, Array.emptyByteArray) else (chunks.init, chunks.last)
    full
      .foldLeft(Future.unit)((before, chunk) => before.flatMap(_ => segment.add(chunk)))
      .map(_ => task.end(segment, rest))
  }

  override def withdraw(attempt: Long, batch: Long): Unit = tasks.remove((attempt, batch)).foreach { task =>
    task.giveUp()
    worker.receive(ToExecutor.Drop(attempt, task.storeDirectories))
  }

  override def read(key: SegmentKey): Future[Option[Array[Byte]]] = reader.open(key).flatMap {
    case Some(found) => content(found).map(Some(_))
    case None =>
      storage
        .read(plain(key), 1L << 20, options.commitTimeoutMs)
        .flatMap(_.asFuture)
  }

  override def snapshots(storeDirectory: String): Future[Seq[(Long, Option[String])]] =
    places(storeDirectory).map(_.map(place => (place.version, place.id)))

  private def places(storeDirectory: String): Future[Vector[SnapshotPlace]] =
    worker.versions(storeDirectory).flatMap {
      case Some(versions) => Future.successful(versions.snapshots)
      case None =>
        reader.snapshots().map(_.held.filter(_.key.storeDirectory == storeDirectory).map(SnapshotPlace.of))
    }

  // What of snapshots is in data files, by the name of the piece, and which stores have one under way.
  private val uploaded = mutable.Map.empty[String, SealedSegment]
  private val underWay = mutable.Set.empty[String]
  // Snapshots that the driver does not want, whatever they consist of: they are not offered at each round of maintenance.
  private val unwanted = mutable.Set.empty[(SegmentKey, Long)]

  override def takesSnapshots: Boolean = true

  override def snapshot(key: SegmentKey, attempt: Long, files: Vector[SnapshotPiece]): Future[Unit] =
    if (unwanted((key, attempt)) || !underWay.add(key.storeDirectory)) Future.unit
    else {
      val ended = worker.snapshotUploads().flatMap {
        case None => Future.unit
        case Some(uploads) => upload(uploads, key, attempt, files)
      }
      ended.onComplete(_ => underWay -= key.storeDirectory)
      ended.recover { case _ => () }
    }

  private def upload(uploads: SnapshotUploads, key: SegmentKey, attempt: Long, files: Vector[SnapshotPiece]) = {
    val pending = files.filterNot(file => uploaded.contains(file.name)).map { file =>
      val of = key.copy(qualifier = Some(file.name), kind = SegmentKind.SnapshotFile)
      uploads.put(of, file.content).map(chunk => (file.name, of, chunk))
    }
    // Of such large ones an entry holds one: the others wait for further entries.
    val atLeast = if (context.runtime.random.nextDouble() < 0.3) ProtocolWiring.LargeZip else 0
    for {
      chunks <- Future.sequence(pending)
      locations <- Future.sequence(chunks.map(_._3.location))
      news = chunks.zip(locations).map { case ((name, of, _), at) =>
        name ->
          SealedSegment(of, None, Vector(SealedPart.Stored(SegmentChunk.part(at))))
      }.toMap
      zip = SealedSegment(key, None, Vector(SealedPart.Inline(SnapshotZip.encode(files, atLeast))))
      named = files.map(file => news.getOrElse(file.name, uploaded(file.name)))
      answer <- uploads.offer(attempt, zip +: named)
    } yield answer match {
      case Offered.Held =>
        uploaded ++= files.map(_.name).zip(named): Unit
        keep(key.storeDirectory, files)
      case Offered.Refused(_, missing, isCertain) =>
        uploaded.filterInPlace { (_, segment) =>
          !segment.parts.exists { case SealedPart.Stored(part) => part.file.exists(missing); case _ => false }
        }
        if (missing.isEmpty) unwanted += key -> attempt: Unit
        if (isCertain) chunks.foreach(_._3.discard())
      case Offered.OverBudget => chunks.foreach(_._3.discard())
      case Offered.Ended => unwanted += key -> attempt: Unit
    }
  }

  override def readSnapshot(key: SegmentKey): Future[Option[Vector[Array[Byte]]]] =
    places(key.storeDirectory).map(_.find(place =>
      place.version == key.version && place.id == key.checkpointId
    )).flatMap {
      case None => Future.successful(None)
      case Some(place) => reader.held(key, place.batch).flatMap {
          case None => Future.successful(None)
          case Some(zip) =>
            for {
              names <- content(zip).map(SnapshotZip.decode)
              files <- Future.sequence(names.map { name =>
                zip.in.snapshotFile(key.storeDirectory, name + SegmentKind.SnapshotFile.suffix) match {
                  case Some(segment) => file(key.storeDirectory, name, FoundSegment(zip.in, segment))
                  case None => Future.failed(new IOException(s"file $name of ${key.relativePath} is not in its entry"))
                }
              })
            } yield {
              keep(key.storeDirectory, names.zip(files).map { case (name, bytes) => SnapshotPiece(name, bytes) })
              Some(files)
            }
        }
    }

  /** From the local disk, if it is there still, or from the log. */
  private def file(storeDirectory: String, name: String, found: FoundSegment): Future[Array[Byte]] =
    environment.kept.find(storeDirectory, name)(stream => reader.isContent(found, stream)) match {
      case Some(here) => Future.successful(context.disk.open(here).readAllBytes())
      case None => content(found)
    }

  /** The store's own files go with its local state; what is kept of them stays. */
  private def keep(storeDirectory: String, files: Vector[SnapshotPiece]): Unit =
    try {
      val own = files.map(file => file.name -> context.disk.writeNow(s"$storeDirectory/${file.name}", file.content))
      environment.kept.keep(storeDirectory, own.toMap, context.disk.near, ProtocolWiring.KeptBytes)
      own.foreach { case (_, file) => context.disk.delete(file) }
    } catch { case _: IOException => () }

  private def content(found: FoundSegment): Future[Array[Byte]] =
    Future.sequence(found.segment.parts.indices.map(reader.part(found, _))).map(_.flatten.toArray)

  override def release(storeDirectory: String, lowest: Long): Unit = worker.release(storeDirectory, lowest)

  override def handle(message: ToExecutor): Future[Unit] = Future.successful(worker.receive(message))

  override def close(): Unit = {
    worker.close(): Unit
    requests.close()
  }

  private def uploader(epoch: Long): LogUploader[SegmentChunk] = {
    val instance = context.runtime.random.nextUuid().toString.take(8)
    new LogUploader[SegmentChunk](
      storage,
      location.base,
      file => LogLayout.dataFile(epoch, run.run, name, file.toLong, instance),
      new DataFileEncoder(Writer(run.run, epoch, context.name, context.name)),
      environment.memory,
      new ObjectDiscarder(storage, context.runtime, options.commitTimeoutMs, environment.uploadMetrics),
      UploaderOptions.of(options),
      context.runtime,
      environment.uploadMetrics
    )
  }
}
