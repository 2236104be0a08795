package sparkdstl.sim.wiring

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{SegmentKey, SegmentKind, Writer}
import sparkdstl.log.read.{EntryReader, FoundSegment, SegmentReader}
import sparkdstl.log.storage.StorageOperation.Read
import sparkdstl.log.transport.{DriverLink, RunId, SealedPart, SealedSegment, SnapshotPlace, ToExecutor}
import sparkdstl.log.upload.{DataFiles, LogUploader, ObjectDiscarder}
import sparkdstl.log.worker.{LocalStore, RunWorker, SealedStore, SnapshotUploads, StoreSnapshot, TaskWriter}
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
  private val storage = environment.storage()
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
    storage,
    new EntryReader(storage, 4096, Some(environment.copies -> run.run)),
    environment.entries,
    environment.ranges,
    run.run
  )

  override def seal(attempt: Long, batch: Long, partitions: Int, segments: Vector[WrittenSegment]): Future[Unit] =
    worker.task(attempt, batch, partitions).flatMap {
      case None => Future.failed(new IOException(s"the driver does not coordinate ${run.run}"))
      case Some(task) =>
        tasks((attempt, batch)) = task
        segments.filter(_.key.kind == SegmentKind.Changelog).foreach(of => carry(task, of))
        segments
          .foldLeft(Future.unit)((before, segment) => before.flatMap(_ => write(task, segment)))
          .flatMap(_ => task.seal())
    }

  /** Changes that are based on a state from storage prove nothing of what was here before. */
  private def carry(task: TaskWriter, changes: WrittenSegment): Unit = {
    val store = changes.key.storeDirectory
    if (changes.base.isEmpty) underWay.remove(store).foreach(_.transit.abandon())
    else task.carryFor(store, new CarriedState(store))
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
      storage.read(plain(key), Read(plain(key), 1L << 20))
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
  private val underWay = mutable.Map.empty[String, Snapshot]

  private final class Snapshot(val transit: StoreSnapshot, val pieces: Vector[SnapshotPiece]) {
    var named = Vector.empty[SealedSegment]
  }

  /** As the adapter's materialization: hears what becomes of the snapshot of a store. */
  private final class CarriedState(store: String) extends SealedStore {
    override def carried(batch: Long): Vector[SealedSegment] =
      underWay.get(store).fold(Vector.empty[SealedSegment])(_.transit.carry(batch))

    override def accepted(carried: Boolean, notTaken: Option[Vector[String]]): Unit = underWay.get(store).foreach { of =>
      of.transit.accepted(carried, notTaken) match {
        case StoreSnapshot.Fate.Pending =>
        case StoreSnapshot.Fate.Held =>
          uploaded ++= of.pieces.map(_.name).zip(of.named)
          keep(store, of.pieces)
          underWay -= store
        case StoreSnapshot.Fate.Missing(files) =>
          uploaded.filterInPlace { (_, segment) =>
            !segment.parts.exists { case SealedPart.Stored(part) => part.file.exists(files); case _ => false }
          }
          underWay -= store
      }
    }

    override def givenUp(): Unit = underWay.get(store).foreach { of =>
      of.transit.givenUp()
      if (!of.transit.isUnderWay) underWay -= store
    }
  }

  override def takesSnapshots: Boolean = true

  override def snapshot(key: SegmentKey, files: Vector[SnapshotPiece]): Future[Unit] =
    if (underWay.contains(key.storeDirectory)) Future.unit
    else {
      val snapshot = new Snapshot(new StoreSnapshot(key.storeDirectory, key.version), files)
      underWay(key.storeDirectory) = snapshot
      worker.snapshotUploads().flatMap {
        case None => Future.unit
        case Some(uploads) => upload(uploads, key, snapshot)
      }.recover { case _ =>
        snapshot.transit.abandon()
        if (underWay.get(key.storeDirectory).contains(snapshot)) underWay -= key.storeDirectory
      }
    }

  private def upload(uploads: SnapshotUploads, key: SegmentKey, snapshot: Snapshot): Future[Unit] = {
    val files = snapshot.pieces
    val known = uploaded.toMap
    val pending = files.filterNot(file => known.contains(file.name)).map { file =>
      val of = key.copy(qualifier = Some(file.name), kind = SegmentKind.SnapshotFile)
      uploads.put(of, file.content).map { chunk =>
        snapshot.transit.uploads(chunk)
        (file.name, of, chunk)
      }
    }
    // Of such large ones an entry takes one: the others wait for later seals.
    val atLeast = if (context.runtime.random.nextDouble() < 0.3) ProtocolWiring.LargeZip else 0
    for {
      chunks <- Future.sequence(pending)
      locations <- Future.sequence(chunks.map(_._3.location))
      news = chunks.zip(locations).map { case ((name, of, _), at) =>
        name -> SealedSegment(of, None, Vector(SealedPart.Stored(at)))
      }.toMap
      zip = SealedSegment(key, None, Vector(SealedPart.Inline(SnapshotZip.encode(files, atLeast))))
    } yield {
      snapshot.named = files.map(file => news.getOrElse(file.name, known(file.name)))
      snapshot.transit.complete(zip +: snapshot.named)
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
      environment.kept.put(storeDirectory, own.toMap, context.disk.near, ProtocolWiring.KeptBytes)
      own.foreach { case (_, file) => context.disk.delete(file) }
    } catch { case _: IOException => () }

  private def content(found: FoundSegment): Future[Array[Byte]] =
    Future.sequence(found.segment.parts.indices.map(reader.part(found, _))).map(_.flatten.toArray)

  override def release(storeDirectory: String, lowest: Long): Unit = worker.release(storeDirectory, lowest)

  override def handle(message: ToExecutor): Future[Unit] = Future.successful(worker.receive(message))

  override def close(): Unit = {
    worker.close(): Unit
    storage.close()
  }

  private def uploader(epoch: Long): LogUploader = {
    val instance = context.runtime.random.nextUuid().toString.take(8)
    new LogUploader(
      storage.log,
      location.base,
      new DataFiles(Writer(run.run, epoch, context.name, context.name), name, instance),
      environment.memory,
      new ObjectDiscarder(storage.log, context.runtime, options.commitTimeoutMs, environment.uploadMetrics),
      options,
      context.runtime,
      environment.uploadMetrics
    )
  }
}
