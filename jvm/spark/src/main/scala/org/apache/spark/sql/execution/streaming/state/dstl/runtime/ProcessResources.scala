// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.io.{File, IOException}
import java.net.URI
import java.nio.file.{Path => LocalPath}
import java.security.PrivilegedAction
import java.util.UUID
import java.util.concurrent.{
  ConcurrentHashMap,
  Executor,
  Executors,
  RejectedExecutionException,
  ThreadFactory,
  ThreadLocalRandom,
  TimeUnit
}
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.ExecutionContext
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.security.UserGroupInformation

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.error.Causes
import sparkdstl.log.format.QueryLocation
import sparkdstl.log.read._
import sparkdstl.log.request._
import sparkdstl.log.runtime.{ProtocolRuntime, RandomSource, ScheduledTimer, Waiting}
import sparkdstl.log.storage._
import sparkdstl.log.upload.{MemoryBudget, UploadMetrics}
import sparkdstl.log.worker.MaterializationMetrics

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.util.{ThreadUtils, Utils}

/** A checkpoint, with the settings of the query or the reader. */
private[dstl] final case class Checkpoint(root: Path, configuration: Configuration, options: LogOptions)

/**
 * The resources that all queries of a process share: threads, memory budgets, caches, the clients of storage.
 *
 * @param env the Spark environment; null in a process that has none
 */
private[dstl] final class ProcessResources(env: SparkEnv) extends AutoCloseable with Logging {
  import ProcessResources._

  /** Blocks threads of Spark that wait for the log. */
  val waiting = new Waiting

  private val timer = new ScheduledTimer(ThreadUtils.namedThreadFactory("dstl-timer"))
  private val continuations = ThreadUtils.newDaemonFixedThreadPool(ContinuationThreads, "dstl-protocol")
  val runtime: ProtocolRuntime =
    new ProtocolRuntime(timer, Chance, ExecutionContext.fromExecutor(continuations, reportUnlessClosed))

  val requestMetrics = new RequestMetrics
  private val histories = new StorageHistories
  private val stores = new ConcurrentHashMap[StoreKey, SharedStore]
  private val clients = new ConcurrentHashMap[ClientKey, FileSystem]
  private val memory = new MemoryObjectStore

  val inlineBudget = new InlineBudget(math.max(MinimumInlineBudget, Runtime.getRuntime.maxMemory() / 8))
  // Each query raises it.
  val uploads = new MemoryBudget(1)
  val uploadMetrics = new UploadMetrics
  val replayMetrics = new ReplayMetrics
  val recoveryProgress = new RecoveryProgress(runtime)
  val entries = new MemoryCache[EntryPlace, EntryFound](MinimumEntryBytes, runtime)(_.weight)
  val ranges = new MemoryCache[RangePlace, Array[Byte]](MinimumEntryBytes, runtime)(bytes => Some(bytes.length.toLong))
  private val entriesIdleMillis = new AtomicLong(Long.MaxValue)
  forgetIdleEntries()

  private val snapshotWork = new java.util.concurrent.ThreadPoolExecutor(
    1,
    1,
    60L,
    TimeUnit.SECONDS,
    new java.util.concurrent.LinkedBlockingQueue[Runnable],
    ThreadUtils.namedThreadFactory("dstl-materialize")
  )
  val snapshotUploads = new MemoryBudget(SnapshotBudget)
  val materializations = new MaterializationMetrics

  private val localDisk = ThreadUtils.newDaemonFixedThreadPool(LocalDiskThreads, "dstl-local-disk")
  private val diskCaches = new ConcurrentHashMap[Long, DiskCache]

  // Deleted at the end: an application can begin another Spark context.
  private val localDirectories = ConcurrentHashMap.newKeySet[File]()

  /** SST files of snapshots on the local disk, for stores that are loaded again. */
  val sstCache = new SstCache(
    new HardLinks(near => localDirectory(near.toString, "dstl-kept"))
  )

  /** Spark's id of this process among the executors. */
  val executorName: String = if (env == null) "none" else env.executorId

  val application: String = if (env == null) "none" else env.conf.getOption("spark.app.id").getOrElse("unknown")

  /** Memory for uploads to data files: the largest limit of all queries. */
  def uploadBudget(options: LogOptions): MemoryBudget = {
    uploads.ensureAtLeast(options.uploadMaxInFlight)
    uploads
  }

  /** Threads that pack and upload snapshots: the largest number of all queries. */
  def snapshotThreads(options: LogOptions): Executor = snapshotWork.synchronized {
    val threads = math.max(options.materializeThreads, snapshotWork.getCorePoolSize)
    snapshotWork.setMaximumPoolSize(threads)
    snapshotWork.setCorePoolSize(threads)
    snapshotWork
  }

  /** The cache of commit entries: the largest size and the shortest idle time of all queries. */
  def entryCache(options: LogOptions): MemoryCache[EntryPlace, EntryFound] = {
    entries.ensureAtLeast(options.cacheMaxSize * EntryShare / 4)
    entriesIdleMillis.accumulateAndGet(options.cacheIdleTimeoutMs, math.min(_, _)): Unit
    entries
  }

  /** The cache of ranges of data files, which shares its memory limit with the commit entries. */
  def sharedRanges(options: LogOptions): SharedRanges = {
    ranges.ensureAtLeast(options.cacheMaxSize * (4 - EntryShare) / 4)
    new SharedRanges(ranges, diskCache(options), runtime)
  }

  /** The disk cache of that size; None if the options turn it off. */
  def diskCache(options: LogOptions): Option[DiskCache] = Option.when(options.diskCacheMaxSize > 0)(
    diskCaches.computeIfAbsent(
      options.diskCacheMaxSize,
      maxBytes => {
        // Java's directory of temporary files may be small, and the files of a process that is killed stay there.
        val local = Utils.getLocalDir(if (env == null) new SparkConf else env.conf)
        new DiskCache(new ThreadedLocalFiles(localDirectory(local, "dstl"), localDisk), maxBytes, runtime)
      }
    )
  )

  private def localDirectory(in: String, prefix: String): LocalPath = {
    val directory = Utils.createTempDir(in, prefix)
    localDirectories.add(directory)
    directory.toPath
  }

  /** The client of the file system of `path`: one in the process for the same settings and user, also if Hadoop shares none. */
  def fileSystem(path: Path, configuration: Configuration): FileSystem = {
    val key = ClientKey.of(path, configuration)
    def client = path.getFileSystem(configuration)
    if (key.isShared) client else clients.computeIfAbsent(key, _ => client)
  }

  /** The path with the scheme and the authority of its file system. */
  def qualified(path: Path, configuration: Configuration): Path = fileSystem(path, configuration).makeQualified(path)

  /** The places of the commit entries and the data files of a checkpoint. */
  def location(of: Checkpoint): QueryLocation = {
    val configured = of.options.basePath.map(path => qualified(new Path(path), of.configuration))
    QueryLocation(of.root, configured.getOrElse(new Path(of.root, "dstl")), configured.map(_.toString))
  }

  /**
   * Runs attempts at requests to the file system of `path` as the current user; their threads are bounded for each file system
   * and user. A client that a program has closed, which it shares with all others in this process, is replaced.
   */
  def store(path: Path, configuration: Configuration, options: LogOptions): ThreadedObjectStore = {
    val key = StoreKey.of(path, configuration, options.publish)
    def storage = HadoopLogStorage.on(fileSystem(path, configuration), configuration, path, options.publish)
    val store = stores.compute(
      key,
      (_, known) =>
        if (known == null) {
          val threads = Executors.newCachedThreadPool(threadsOf(key.client.user))
          val store = new ThreadedObjectStore(storage, MinimumThreads, options.uploadMaxAttempts, threads)
          SharedStore(store, key.cached(path, configuration))
        } else {
          val client = key.cached(path, configuration)
          if (client.exists(now => !known.client.exists(_ eq now))) known.store.use(storage)
          known.copy(client = client)
        }
    ).store
    store.ensureAtLeast(
      math.max(MinimumThreads, options.uploadThreads + options.downloadThreads),
      options.uploadMaxAttempts
    )
    store
  }

  /** Makes threads that work as that user, also if another user needs them first: some clients take the user of the thread. */
  private def threadsOf(user: UserGroupInformation): ThreadFactory = {
    val named = ThreadUtils.namedThreadFactory("dstl-storage")
    work => named.newThread(() => user.doAs((() => work.run()): PrivilegedAction[Unit]))
  }

  /** Requests to the storage of `path` with the retries of `options`; `isStarting` is as in [[Requests]]. */
  def requests(path: Path, options: LogOptions, isStarting: () => Boolean = () => false): Requests =
    new Requests(RequestOptions.of(options), runtime, requestMetrics, histories.of(path), isStarting = isStarting)

  /** The storage of a checkpoint, with its own requests; `isStarting` is as in [[Requests]]. */
  def storage(checkpoint: Checkpoint, isStarting: () => Boolean = () => false): QueryStorage = {
    import checkpoint.{configuration, options}
    val location = this.location(checkpoint)
    val logStore = if (options.inMemory) memory else store(location.base, configuration, options)
    QueryStorage(
      location,
      new StorageClient(store(location.root, configuration, options), requests(location.root, options, isStarting)),
      new StorageClient(logStore, requests(location.base, options, isStarting)),
      options.commitTimeoutMs
    )
  }

  /** Threads in use by attempts at requests. */
  def busyStorageThreads: Int = stores.values.asScala.iterator.map(_.store.busyThreads).sum

  /** Cancelled attempts that were interrupted to free their thread. */
  def interruptedAttempts: Long = stores.values.asScala.iterator.map(_.store.interruptedAttempts).sum

  /** Bytes in the disk caches. */
  def diskCacheBytes: Long = diskCaches.values.asScala.iterator.map(_.bytes).sum

  /** Continuations that arrive after the close are dropped. */
  private def reportUnlessClosed(error: Throwable): Unit = error match {
    case _: RejectedExecutionException if continuations.isShutdown =>
    case other => ExecutionContext.defaultReporter(other)
  }

  private def forgetIdleEntries(): Unit = timer.schedule(IdleCheckMillis) { () =>
    Seq(entries, ranges).foreach(_.forgetIdle(TimeUnit.MILLISECONDS.toNanos(entriesIdleMillis.get)))
    forgetIdleEntries()
  }: Unit

  override def close(): Unit = Causes.closingAll(
    Iterator[() => Unit](
      () => Seq(entries, ranges).foreach(_.forgetIdle(0)),
      () => stores.values.forEach(_.store.close()),
      () => timer.close(),
      () => Seq(localDisk, snapshotWork, continuations).foreach(_.shutdownNow()),
      () => localDirectories.forEach(delete(_)),
      // Hadoop closes those that it shares.
      () => Causes.closingAll(clients.values.asScala.iterator)(_.close())
    )
  )(_.apply())

  private def delete(directory: File): Unit =
    try Utils.deleteRecursively(directory)
    catch { case error: IOException => logWarning(s"$directory could not be deleted", error) }
}

private object ProcessResources {
  private val ContinuationThreads = 2
  private val MinimumThreads = 16
  private val LocalDiskThreads = 4
  private val MinimumEntryBytes = 1024L * 1024

  /** Share of commit entries in the memory for caches, in quarters. */
  private val EntryShare = 3
  private val IdleCheckMillis = 10000L
  private val MinimumInlineBudget = 32L * 1024 * 1024

  /** Memory for uploads of snapshots: a few files at a time, because they run in the background. */
  private val SnapshotBudget = 32L * 1024 * 1024

  /**
   * Identifies a client of a file system, as Hadoop does.
   *
   * @param unshared the settings of a client that Hadoop does not share, which may hold credentials
   */
  private final case class ClientKey(
      uri: (String, String),
      user: UserGroupInformation,
      unshared: Option[Map[String, String]]
  ) {
    def isShared: Boolean = unshared.isEmpty
  }

  private object ClientKey {
    def of(path: Path, configuration: Configuration): ClientKey = {
      val uri = uriOf(path, configuration)
      val isUnshared = configuration.getBoolean(s"fs.${uri.getScheme}.impl.disable.cache", false)
      val settings = Option.when(isUnshared)(configuration.getPropsWithPrefix("fs.").asScala.toMap)
      ClientKey((uri.getScheme, uri.getAuthority), UserGroupInformation.getCurrentUser, settings)
    }
  }

  private def uriOf(path: Path, configuration: Configuration): URI =
    if (path.toUri.getScheme == null) FileSystem.getDefaultUri(configuration) else path.toUri

  /** @param publishesOnClose distinguishes what a client mounts */
  private final case class StoreKey(client: ClientKey, publish: PublishMode, publishesOnClose: Boolean) {

    /** The file system that the process shares. */
    def cached(path: Path, configuration: Configuration): Option[FileSystem] =
      Option.when(client.isShared)(path.getFileSystem(configuration))
  }

  private object StoreKey {
    def of(path: Path, configuration: Configuration, publish: PublishMode): StoreKey = {
      val client = ClientKey.of(path, configuration)
      val onClose = client.isShared && HadoopLogStorage.publishesOnClose(path.getFileSystem(configuration), path)
      StoreKey(client, publish, onClose)
    }
  }

  /** @param client the file system of the store, if Hadoop shares it */
  private final case class SharedStore(store: ThreadedObjectStore, client: Option[FileSystem])

  private object Chance extends RandomSource {
    override def nextDouble(): Double = ThreadLocalRandom.current().nextDouble()
    override def nextUuid(): UUID = UUID.randomUUID()
  }
}
