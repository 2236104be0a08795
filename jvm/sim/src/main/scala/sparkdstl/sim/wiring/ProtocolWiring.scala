package sparkdstl.sim.wiring

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.{CommitMetrics, CoordinatedRuns, DriverResources, RunCoordinator, RunFactory, RunSetup}
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.coordinator.retention.Deleter
import sparkdstl.log.format.QueryLocation
import sparkdstl.log.read.{DiskCache, EntryFound, EntryPlace, EntryReader, MemoryCache, RangePlace, SharedRanges}
import sparkdstl.log.request.{QueryStorage, RequestMetrics, RequestOptions, Requests, StorageClient, StorageHistory}
import sparkdstl.log.storage.SstCache
import sparkdstl.log.storage.StorageOperation.Read
import sparkdstl.log.transport.{DriverLink, ExecutorLink, FromDriver, RunId, ToDriver}
import sparkdstl.log.upload.{MemoryBudget, UploadMetrics}
import sparkdstl.sim.model.{CommitContent, Names}
import sparkdstl.sim.spark.{DriverLog, ExecutorLog, LogWiring, ProcessContext}

/** Puts the log's own classes into a world, the way the adapter for Spark puts them into its processes. */
final class ProtocolWiring(stores: Vector[String]) extends LogWiring {
  private val environments = mutable.Map.empty[ProcessContext, ProcessEnvironment]

  override def driver(context: ProcessContext, run: RunId, executors: ExecutorLink): DriverLog =
    new ProtocolDriver(environmentOf(context), run, executors)

  override def executor(
      context: ProcessContext,
      executor: String,
      run: RunId,
      driver: DriverLink,
      drop: (Option[Long], Seq[String]) => Unit
  ): ExecutorLog = new ProtocolExecutor(environmentOf(context), executor, run, driver, drop, stores)

  private def environmentOf(context: ProcessContext): ProcessEnvironment =
    environments.getOrElseUpdate(context, new ProcessEnvironment(context))
}

object ProtocolWiring {
  val Location: QueryLocation = QueryLocation(new Path(Names.Root), new Path(Names.Root, "dstl"), None)

  /** Of files of snapshots on the local disk of a process: not those of all stores. */
  val KeptBytes: Long = 1500L

  /** More than half of what an entry takes of snapshots. */
  val LargeZip: Int = 150 * 1024

  /** Small sizes, so that small states show what large ones do; times as they are in earnest, or shorter. */
  val Options: LogOptions = LogOptions.default
    .updated(LogOptions.CommitTimeout, 60000L)
    .updated(LogOptions.InlineMaxSegmentSize, 300L)
    .updated(LogOptions.InlineMaxBatchSize, 1200L)
    .updated(LogOptions.PreemptivePersistThreshold, 500L)
    .updated(LogOptions.PersistSizeThreshold, 900L)
    .updated(LogOptions.PersistDelay, 200L)
    .updated(LogOptions.UploadMaxInFlight, 64 * 1024L)
    .updated(LogOptions.UploadTimeout, 2000L)
    .updated(LogOptions.NextAttemptDelay, 100L)
}

/** What one process has once, whatever runs in it. */
private[wiring] final class ProcessEnvironment(val context: ProcessContext) {
  val options: LogOptions = ProtocolWiring.Options
  val location: QueryLocation = ProtocolWiring.Location
  val runs = new CoordinatedRuns
  val budget = new InlineBudget(8 * 1024)
  // In some processes memory is short, and what was read is on the local disk alone.
  private val isShort = context.runtime.random.nextDouble() < 0.5
  val copies = new DiskCache(context.disk, 48 * 1024, context.runtime)
  val kept = new SstCache(context.disk)
  val entries = new MemoryCache[EntryPlace, EntryFound](
    if (isShort) 8 * 1024 else 64 * 1024,
    context.runtime
  )(_.weight)
  val ranges = new SharedRanges(
    new MemoryCache[RangePlace, Array[Byte]](if (isShort) 200 else 16 * 1024, context.runtime)(bytes =>
      Some(bytes.length.toLong)
    ),
    Some(copies),
    context.runtime
  )
  val memory = new MemoryBudget(options.uploadMaxInFlight)
  val commitMetrics = new CommitMetrics
  val uploadMetrics = new UploadMetrics
  var current: Option[ProtocolDriver] = None
  private val requestMetrics = new RequestMetrics
  private val history = new StorageHistory
  private var unowned = Set.empty[Long]

  /** Deletes an entry while no run is at work. */
  def deleteUnowned(batch: Long): Future[Unit] = {
    val own = storage()
    new Deleter(
      own,
      new EntryReader(own, 4096)
    ).deleteUnowned(batch, unowned).map(left => unowned = left)(context.inline)
  }

  /** Storage for one run. */
  def storage(): QueryStorage = {
    val requests = new Requests(RequestOptions.of(options), context.runtime, requestMetrics, history)
    val client = new StorageClient(context.storage, requests)
    QueryStorage(location, client, client, options.commitTimeoutMs)
  }
}

private[wiring] final class ProtocolDriver(
    environment: ProcessEnvironment,
    run: RunId,
    executors: ExecutorLink
) extends DriverLog {
  import environment.{context, location, options}
  private implicit val executor: ExecutionContext = context.inline
  private val storage = environment.storage()
  private var coordinator: Option[RunCoordinator] = None
  private var closing = false
  private var ending = Option.empty[Future[Unit]]

  override def open(): Future[Unit] = {
    val before = environment.current
    environment.current = Some(this)
    for {
      _ <- before.fold(Future.unit)(_.endAndAwaitQuiet())
      begun <- RunFactory.begin(
        storage,
        RunSetup(run.run, context.name, context.name, 1L, options),
        DriverResources(executors, environment.budget, environment.commitMetrics)
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
    coordinator.get.commit(batch, sparkContent, reported)

  override def batches(): Future[Seq[Long]] =
    storage.batches()

  override def readEntry(batch: Long): Future[Option[Array[Byte]]] =
    storage.read(location.entry(batch), Read(location.entry(batch), 1L << 20)).map(_.map(CommitContent.lines))

  override def delete(batch: Long): Future[Unit] =
    environment.runs.on(run.root).filter(_.isAtWork) match {
      case Some(current) => current.deleteEntry(batch)
      case None => environment.deleteUnowned(batch)
    }

  override def executorLost(executor: String): Unit = environment.runs.executorLost(executor, "it was lost")

  /** As Spark's adapter notices that a query's thread has ended: some time after it. */
  override def close(): Unit = {
    closing = true
    val _ = context.runtime.timer.schedule((context.runtime.random.nextDouble() * 5000).toLong)(() => end(): Unit)
  }

  private def end(): Future[Unit] = {
    if (ending.isEmpty) {
      environment.runs.end(run): Unit
      ending = Some(coordinator.fold(Future.unit)(_.close()).transform { closed =>
        storage.close()
        closed
      })
    }
    ending.get
  }

  private def endAndAwaitQuiet(): Future[Unit] =
    end().recover { case _ => () }.flatMap(_ => storage.whenQuiet(30000))
}
