package sparkdstl.sim.wiring

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.{CommitMetrics, RunCoordinator}
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.coordinator.ownership.CoordinatedRuns
import sparkdstl.log.coordinator.retention.UnownedDeletion
import sparkdstl.log.format.{LogLayout, QueryLocation, SegmentKey, SegmentKind, Writer}
import sparkdstl.log.read.{
  EntryFound,
  EntryPlace,
  EntryReader,
  FetchCache,
  FoundSegment,
  RangePlace,
  SegmentReader,
  SharedRanges
}
import sparkdstl.log.request._
import sparkdstl.log.storage.{ObjectStore, Payload}
import sparkdstl.log.transport._
import sparkdstl.log.upload._
import sparkdstl.log.worker.{DataFileEncoder, LocalStore, Offered, RunWorker, SegmentChunk, SnapshotUploads, TaskWriter}
import sparkdstl.sim.model.{CommitContent, Lineage, LineageFiles, Names, SnapshotPiece, SnapshotZip}
import sparkdstl.sim.spark._

/** Puts the log's own classes into a world, the way the adapter for Spark puts them into its processes. */
final class ProtocolWiring(flaws: Flaws, stores: Vector[String]) extends LogWiring {
  private val environments = mutable.Map.empty[ProcessContext, ProcessEnvironment]

  override def driver(context: ProcessContext, run: RunId, executors: ExecutorLink): DriverLog =
    new ProtocolDriver(environmentOf(context), run, executors, flaws)

  override def executor(
      context: ProcessContext,
      executor: String,
      run: RunId,
      driver: DriverLink,
      drop: (Option[Long], Seq[String]) => Unit
  ): ExecutorLog = new ProtocolExecutor(environmentOf(context), executor, run, flaws, driver, drop, stores)

  override val inspector: StorageInspector = new ProtocolInspector(ProtocolWiring.Location)

  private def environmentOf(context: ProcessContext): ProcessEnvironment =
    environments.getOrElseUpdate(context, new ProcessEnvironment(context, flaws))
}

object ProtocolWiring {
  val Location: QueryLocation = QueryLocation(new Path(Names.Root), new Path(Names.Root, "dstl"), None)

  /** More than half of what an entry takes of snapshots. */
  val LargeZip: Int = 150 * 1024

  /** Small sizes, so that small states show what large ones do; times as they are in earnest, or shorter. */
  val Options: LogOptions = LogOptions
    .parse(Nil)
    .copy(
      commitTimeoutMs = 60000,
      inlineMaxSegmentSize = 300,
      inlineMaxBatchSize = 1200,
      preemptivePersistThreshold = 500,
      persistSizeThreshold = 900,
      persistDelayMs = 200,
      fencingRelistAfterMs = 2000,
      uploadMaxInFlight = 64 * 1024,
      uploadTimeoutMs = 2000,
      nextAttemptDelayMs = 100
    )
}

/** What one process has once, whatever runs in it. */
private[wiring] final class ProcessEnvironment(val context: ProcessContext, flaws: Flaws) {
  val options: LogOptions = flaws.options(ProtocolWiring.Options)
  val location: QueryLocation = ProtocolWiring.Location
  val runs = new CoordinatedRuns
  val budget = new InlineBudget(8 * 1024)
  val entries = new FetchCache[EntryPlace, EntryFound](64 * 1024, context.runtime)(EntryFound.weight)
  val ranges = new SharedRanges(
    new FetchCache[RangePlace, Array[Byte]](16 * 1024, context.runtime)(bytes => Some(bytes.length.toLong)),
    None,
    context.runtime
  )
  val memory = new MemoryBudget(options.uploadMaxInFlight)
  val commitMetrics = new CommitMetrics
  val uploadMetrics = new UploadMetrics
  var current: Option[ProtocolDriver] = None
  private val requestMetrics = new RequestMetrics
  private val latencies = new AttemptLatencies
  private val hedges = new HedgeBudget()
  private val store: ObjectStore = flaws.storage(context.storage)
  lazy val unowned = new UnownedDeletion(
    location,
    storage()._1,
    new EntryReader(location, storage()._1, options.commitTimeoutMs, 4096, context.runtime),
    options.commitTimeoutMs,
    context.runtime
  )

  /** Storage for one run, and how to end what is under way. */
  def storage(): (StorageClient, Requests) = {
    val requests = new Requests(RequestOptions.of(options), context.runtime, requestMetrics, latencies, hedges)
    (flaws.client(new RequestingStorage(store, requests)), requests)
  }
}

private[wiring] final class ProtocolDriver(
    environment: ProcessEnvironment,
    run: RunId,
    executors: ExecutorLink,
    flaws: Flaws
) extends DriverLog {
  import environment.{context, location, options}
  private implicit val executor: ExecutionContext = context.inline
  private val (storage, requests) = environment.storage()
  private var coordinator: Option[RunCoordinator] = None
  private var closing = false
  private var ended = false

  override def open(): Future[Unit] = {
    val before = environment.current
    environment.current = Some(this)
    for {
      _ <- before.fold(Future.unit)(_.endAndAwaitQuiet())
      begun <- RunCoordinator.begin(
        location,
        options,
        run.run,
        context.name,
        context.name,
        storage,
        storage,
        executors,
        environment.budget,
        1L,
        environment.commitMetrics,
        context.runtime
      )
    } yield
      // Who is stopped while it begins has no run, as in Spark's adapter, where the wait is interrupted.
      if (!closing) {
        coordinator = Some(begun)
        environment.runs.begin(begun): Unit
      }
  }

  override def handle(executor: String, message: ToDriver): Future[FromDriver] =
    environment.runs.answer(executor, run, message)

  override def commit(batch: Long, sparkContent: Array[Byte], reported: Seq[Long]): Future[Unit] =
    coordinator.get.commit(batch, sparkContent, flaws.reported(reported))

  override def batches(): Future[Seq[Long]] =
    storage.list(location.commits, options.commitTimeoutMs).flatMap(_.asFuture).map(LogLayout.batchesIn)

  override def readEntry(batch: Long): Future[Option[Array[Byte]]] =
    storage
      .read(location.entry(batch), 1L << 20, options.commitTimeoutMs)
      .flatMap(_.asFuture)
      .map(_.map(CommitContent.lines))

  override def delete(batch: Long): Future[Unit] =
    if (flaws.deletesWhenAsked) storage.delete(Seq(location.entry(batch)), options.commitTimeoutMs).flatMap(_.asFuture)
    else
      environment.runs.on(run.root).filter(_.isAtWork) match {
        case Some(current) => current.deleteEntry(batch)
        case None => environment.unowned.delete(batch)
      }

  override def executorLost(executor: String): Unit = environment.runs.executorLost(executor, "it was lost")

  /** As Spark's adapter notices that a query's thread has ended: some time after it. */
  override def close(): Unit = {
    closing = true
    val _ = context.runtime.timer.schedule((context.runtime.random.nextDouble() * 5000).toLong)(() => end())
  }

  private def end(): Unit = if (!ended) {
    ended = true
    environment.runs.end(run): Unit
    coordinator.foreach(_.close(): Unit)
    requests.close()
  }

  private def endAndAwaitQuiet(): Future[Unit] = {
    end()
    requests.whenQuiet(30000).map(_ => ())
  }
}

private[wiring] final class ProtocolExecutor(
    environment: ProcessEnvironment,
    name: String,
    run: RunId,
    flaws: Flaws,
    driver: DriverLink,
    drop: (Option[Long], Seq[String]) => Unit,
    stores: Vector[String]
) extends ExecutorLog {
  import environment.{context, location, options}
  private implicit val executor: ExecutionContext = context.inline
  private val (storage, requests) = environment.storage()
  private val tasks = mutable.Map.empty[(Long, Long), TaskWriter]

  private val worker = new RunWorker(run, name, flaws.driverLink(driver), uploader, uploader, options, context.runtime)
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
    new EntryReader(location, storage, options.commitTimeoutMs, 4096, context.runtime),
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
        val (files, logged) = segments.partition(flaws.isFile)
        files
          .map(zip => zip.copy(bytes = wholeState(zip.key, segments)))
          .foldLeft(Future.unit)((before, file) => before.flatMap(_ => publish(file)))
          .flatMap(_ => sealAll(task, logged))
    }

  private def sealAll(task: TaskWriter, segments: Vector[WrittenSegment]): Future[Unit] =
    segments
      .foldLeft(Future.unit)((before, segment) => before.flatMap(_ => write(task, segment)))
      .flatMap(_ => task.seal())

  /** As it is in a file of its own. */
  private def wholeState(zip: SegmentKey, segments: Vector[WrittenSegment]): Array[Byte] =
    Lineage.encode(LineageFiles.decode(segments.filter { of =>
      of.key.kind == SegmentKind.SnapshotFile && of.key.storeDirectory == zip.storeDirectory
    }.map(_.bytes)))

  private def publish(file: WrittenSegment): Future[Unit] =
    storage.replace(plain(file.key), Payload(file.bytes), options.commitTimeoutMs).flatMap(_.asFuture)

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
      case Offered.Held => uploaded ++= files.map(_.name).zip(named): Unit
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
                  case Some(segment) => content(FoundSegment(zip.in, segment))
                  case None => Future.failed(new IOException(s"file $name of ${key.relativePath} is not in its entry"))
                }
              })
            } yield Some(files)
        }
    }

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
