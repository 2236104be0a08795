package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, Executor, RejectedExecutionException, ThreadLocalRandom, TimeUnit}
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong}

import scala.concurrent.ExecutionContext
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.format.QueryLocation
import sparkdstl.log.read.{
  DiskCache,
  EntryFound,
  EntryPlace,
  MemoryCache,
  RangePlace,
  RecoveryProgress,
  ReplayMetrics,
  SharedRanges
}
import sparkdstl.log.request._
import sparkdstl.log.runtime.{ProtocolRuntime, RandomSource, ScheduledTimer}
import sparkdstl.log.storage._
import sparkdstl.log.upload.{MemoryBudget, UploadMetrics}
import sparkdstl.log.worker.MaterializationMetrics

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.util.{ThreadUtils, Utils}
import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.ProcessMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Waiting
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkerSide

/**
 * Everything of the log that a process has once: threads, budgets, caches, the way to the driver or to the executors. Made
 * with the first use in a Spark environment, and closed with it.
 *
 * @param env the Spark environment; null in a process that has none
 */
private[dstl] final class DstlEnvironment private (env: SparkEnv) extends AutoCloseable {
  import DstlEnvironment._

  /** Where threads of Spark wait for the log. */
  val waiting = new Waiting

  private val isClosed = new AtomicBoolean
  private val timer = new ScheduledTimer(ThreadUtils.namedThreadFactory("dstl-timer"))
  private val continuations = ThreadUtils.newDaemonFixedThreadPool(ContinuationThreads, "dstl-protocol")
  val runtime: ProtocolRuntime =
    new ProtocolRuntime(timer, Chance, ExecutionContext.fromExecutor(continuations, reportUnlessClosed))

  val requestMetrics = new RequestMetrics
  private val histories = new StorageHistories
  private val stores = new ConcurrentHashMap[StoreKey, ThreadedObjectStore]
  private val memory = new MemoryObjectStore(() => System.currentTimeMillis())

  val inlineBudget = new InlineBudget(math.max(MinimumInlineBudget, Runtime.getRuntime.maxMemory() / 8))
  val uploads = new MemoryBudget(LogOptions.default.uploadMaxInFlight)
  val uploadMetrics = new UploadMetrics
  val replayMetrics = new ReplayMetrics
  val recoveryProgress = new RecoveryProgress(runtime)
  val entries = new MemoryCache[EntryPlace, EntryFound](MinimumEntryBytes, runtime)(EntryFound.weight)
  val ranges = new MemoryCache[RangePlace, Array[Byte]](MinimumEntryBytes, runtime)(bytes => Some(bytes.length.toLong))
  private val entriesIdleMillis = new AtomicLong(LogOptions.default.cacheIdleTimeoutMs)
  letGoOfIdleEntries()

  private val snapshotWork = new java.util.concurrent.ThreadPoolExecutor(
    LogOptions.default.materializeThreads,
    LogOptions.default.materializeThreads,
    60L,
    TimeUnit.SECONDS,
    new java.util.concurrent.LinkedBlockingQueue[Runnable],
    ThreadUtils.namedThreadFactory("dstl-materialize")
  )
  val snapshotUploads = new MemoryBudget(SnapshotBudget)
  val materializations = new MaterializationMetrics

  private val localDisk = ThreadUtils.newDaemonFixedThreadPool(LocalDiskThreads, "dstl-local-disk")
  private val diskCaches = new ConcurrentHashMap[Long, DiskCache]

  /** Of snapshots, for stores that come back. */
  val sstCache = new SstCache(
    new HardLinks(near => Utils.createTempDir(near.toString, "dstl-kept").toPath)
  )

  /** As Spark names this process among the executors. */
  val executorName: String = if (env == null) "none" else env.executorId

  val application: String = if (env == null) "none" else env.conf.getOption("spark.app.id").getOrElse("unknown")

  /** The driver's side; on executors there is none. */
  val driver: Option[DriverSide] =
    Option.when(env != null && env.executorId == SparkContext.DRIVER_IDENTIFIER)(new DriverSide(env, this))

  /** The executors' side; a driver in local mode has it as well. */
  val workers = new WorkerSide(env, this)

  private val metrics = Option.when(env != null)(new ProcessMetrics(this))
  metrics.foreach(env.metricsSystem.registerSource)
  driver.foreach(_.open())

  /** Memory for what is on its way to data files: as much as the most generous query asks for. */
  def uploadBudget(options: LogOptions): MemoryBudget = {
    uploads.ensureAtLeast(options.uploadMaxInFlight)
    uploads
  }

  /** Threads that pack and upload snapshots: as many as the most generous query asks for. */
  def snapshotThreads(options: LogOptions): Executor = snapshotWork.synchronized {
    val threads = math.max(options.materializeThreads, snapshotWork.getCorePoolSize)
    snapshotWork.setMaximumPoolSize(threads)
    snapshotWork.setCorePoolSize(threads)
    snapshotWork
  }

  /** Commit entries in memory: as many as the most generous query asks for, for as long as the most sparing one wants. */
  def entryCache(options: LogOptions): MemoryCache[EntryPlace, EntryFound] = {
    entries.ensureAtLeast(options.cacheMaxSize * EntryShare / 4)
    entriesIdleMillis.accumulateAndGet(options.cacheIdleTimeoutMs, math.min(_, _)): Unit
    entries
  }

  /** Parts of data files, which have the rest of that memory. */
  def sharedRanges(options: LogOptions): SharedRanges = {
    ranges.ensureAtLeast(options.cacheMaxSize * (4 - EntryShare) / 4)
    new SharedRanges(ranges, diskCache(options), runtime)
  }

  /** The disk cache of that size; None if the options turn it off. */
  def diskCache(options: LogOptions): Option[DiskCache] = Option.when(options.diskCacheMaxSize > 0)(
    diskCaches.computeIfAbsent(
      options.diskCacheMaxSize,
      maxBytes => {
        val directory = Utils.createTempDir(namePrefix = "dstl").toPath
        new DiskCache(new ThreadedLocalFiles(directory, localDisk), maxBytes, runtime)
      }
    )
  )

  /** Attempts at the file system of `path`, bounded for the whole process. */
  def store(path: Path, configuration: Configuration, options: LogOptions): ThreadedObjectStore = {
    val fileSystem = path.getFileSystem(configuration)
    val store = stores.computeIfAbsent(
      StoreKey(fileSystem.getUri.toString, options.publish),
      key =>
        new ThreadedObjectStore(
          HadoopLogStorage(
            configuration,
            new Path(new Path(key.fileSystem), "/"),
            options.publish
          ),
          MinimumThreads,
          options.uploadMaxAttempts,
          ThreadUtils.newDaemonCachedThreadPool("dstl-storage")
        )
    )
    store.ensureAtLeast(math.max(MinimumThreads, options.uploadThreads + options.downloadThreads))
    store
  }

  /** Requests with the options' retries; to be closed by who made it if anybody must wait for what it has under way. */
  def requests(path: Path, options: LogOptions): Requests =
    new Requests(RequestOptions.of(options), runtime, requestMetrics, histories.of(path))

  /** Storage of a query, with requests of its own. */
  def storage(location: QueryLocation, configuration: Configuration, options: LogOptions): QueryStorage = {
    val logStore = if (options.inMemory) memory else store(location.base, configuration, options)
    QueryStorage(
      location,
      new StorageClient(store(location.root, configuration, options), requests(location.root, options)),
      new StorageClient(logStore, requests(location.base, options)),
      options.commitTimeoutMs
    )
  }

  /** Threads that attempts at storage hold now. */
  def busyStorageThreads: Int = stores.values.asScala.iterator.map(_.busyThreads).sum

  /** Cancelled attempts that were interrupted because their thread was needed. */
  def interruptedAttempts: Long = stores.values.asScala.iterator.map(_.interruptedAttempts).sum

  /** Bytes in disk caches. */
  def diskCacheBytes: Long = diskCaches.values.asScala.iterator.map(_.bytes).sum

  /** What still comes when this is closed is wanted by nobody. */
  private def reportUnlessClosed(error: Throwable): Unit = error match {
    case _: RejectedExecutionException if continuations.isShutdown =>
    case other => ExecutionContext.defaultReporter(other)
  }

  private def letGoOfIdleEntries(): Unit = timer.schedule(IdleCheckMillis) { () =>
    Seq(entries, ranges).foreach(_.forgetIdle(TimeUnit.MILLISECONDS.toNanos(entriesIdleMillis.get)))
    letGoOfIdleEntries()
  }: Unit

  /** Ends all waits first, so that their errors name the end of Spark and not what it brings about here. */
  override def close(): Unit = if (isClosed.compareAndSet(false, true)) {
    waiting.close()
    metrics.foreach(env.metricsSystem.removeSource)
    Seq(entries, ranges).foreach(_.forgetIdle(0))
    workers.close()
    stores.values.forEach(_.close())
    timer.close()
    localDisk.shutdownNow(): Unit
    snapshotWork.shutdownNow(): Unit
    continuations.shutdownNow(): Unit
  }
}

private[dstl] object DstlEnvironment {
  private val ContinuationThreads = 2
  private val MinimumThreads = 16
  private val LocalDiskThreads = 4
  private val MinimumEntryBytes = 1024L * 1024

  /** Quarters of the memory for what is read that commit entries have. */
  private val EntryShare = 3
  private val IdleCheckMillis = 10000L
  private val MinimumInlineBudget = 32L * 1024 * 1024

  /** Memory for snapshots on their way: some files' worth, since nobody waits for them. */
  private val SnapshotBudget = 32L * 1024 * 1024

  private final case class StoreKey(fileSystem: String, publish: PublishMode)

  private object Chance extends RandomSource {
    override def nextDouble(): Double = ThreadLocalRandom.current().nextDouble()
    override def nextUuid(): UUID = UUID.randomUUID()
  }

  // Guarded by this.
  private var current: DstlEnvironment = _
  private var of: SparkEnv = _

  /**
   * The environment of this process's Spark environment, closed if that has ended. One of an earlier Spark environment is
   * closed. Only where Spark calls in: from there it is passed.
   */
  def get: DstlEnvironment = synchronized {
    val env = SparkEnv.get
    if (current == null || (of ne env)) {
      if (current != null) current.close()
      current = new DstlEnvironment(env)
      of = env
    }
    current
  }

  /** Where a query's checkpoint and log are. */
  def location(root: Path, configuration: Configuration, options: LogOptions): QueryLocation = {
    val configured = options.basePath.map { path =>
      val base = new Path(path)
      base.getFileSystem(configuration).makeQualified(base)
    }
    QueryLocation(root, configured.getOrElse(new Path(root, "dstl")), configured.map(_.toString))
  }
}
