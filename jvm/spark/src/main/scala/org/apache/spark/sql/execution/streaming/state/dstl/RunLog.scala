package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong}

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.{LogLayout, SegmentKey}
import sparkdstl.log.read.{CachedLogFile, LogFileCache, SegmentInputStream, SegmentReader}

import org.apache.spark.internal.Logging

/**
 * An executor's view of the log of one run: where its stores' changelogs go and come from.
 *
 * Writing: to the log if the driver coordinates this run and the options say so; otherwise changelogs are plain files.
 * Reading: what is committed, as the driver says, or as storage says where there is no coordinator.
 *
 * @param coordinator `None` if the driver has none at all
 * @param makeUploads called when the first chunk comes
 */
private[dstl] final class RunLog(
    paths: QueryPaths,
    run: UUID,
    options: LogOptions,
    coordinator: Option[CoordinatorClient],
    executor: String,
    cache: LogFileCache,
    makeUploads: CoordinatorClient => ExecutorUploads,
    nanoTime: () => Long
) extends Logging {

  private val reader = new SegmentReader(paths.log, paths.base, cache)
  private val activities = new ConcurrentHashMap[String, StoreActivity]
  private val warned = new AtomicBoolean
  private val usedAt = new AtomicLong(nanoTime())
  private val uploads = new OnFirstUse(() => makeUploads(coordinator.get))

  // Replaced by refresh, guarded by this.
  private var opened: OpenReply = coordinator.fold[OpenReply](OpenReply.Unknown)(_.open())
  private var committed: CommittedBatches = committedNow()

  private val isCurrent = opened.isInstanceOf[OpenReply.Current]

  if (!isCurrent && opened == OpenReply.Unknown && run != DstlCheckpointFileManager.NoRun) warnOnce()

  /**
   * A writer into the log; `None` if the changelog is to be a plain file.
   *
   * @throws sparkdstl.log.error.DstlException if another run has taken over: this is a late task of a dead one
   */
  def writer(key: SegmentKey): Option[SegmentWriter] = {
    touch()
    if (synchronized(opened) == OpenReply.Superseded)
      throw DstlErrors.sealRefused(key, run, "another run has taken over")
    else if (!isCurrent || !options.enabled || !options.commitAsync) None
    else
      Some(new SegmentWriter(
        key,
        options,
        uploadsOnFirstUse,
        coordinator.get,
        activity(key.storeDirectory),
        run,
        executor,
        nanoTime
      ))
  }

  /** The segment's bytes, if it is in the log. */
  def read(key: SegmentKey): Option[SegmentInputStream] = locate(key).map { log =>
    val entry = log.entry(key).get
    val counters = activity(key.storeDirectory)
    counters.replayedSegments.incrementAndGet()
    new SegmentInputStream(
      entry.parts.map(_.length),
      index => {
        val bytes = reader.part(log, key, index)
        counters.replayedBytes.addAndGet(bytes.length.toLong)
        bytes
      }
    )
  }

  def contains(key: SegmentKey): Boolean = locate(key).nonEmpty

  /** Drops a segment that Spark deletes; false if it is not in the log, or if this run must not delete. */
  def release(key: SegmentKey): Boolean = {
    touch()
    isCurrent && runOf(key.batch).nonEmpty && coordinator.get.release(key)
  }

  /** The committed segments of a store that are in the log. */
  def list(storeDirectory: String): Seq[ListedSegment] = {
    touch()
    if (isCurrent) coordinator.get.list(storeDirectory) else listFromStorage(storeDirectory)
  }

  def activity(storeDirectory: String): StoreActivity =
    activities.computeIfAbsent(storeDirectory, _ => new StoreActivity)

  def lastBarrier(): Option[BarrierReport] = if (isCurrent) coordinator.get.lastBarrier() else None

  /** Says, once, that nothing goes to the log, because Spark's own provider is told to write snapshots instead. */
  def warnOfSnapshots(): Unit =
    if (isCurrent && options.enabled && warned.compareAndSet(false, true))
      logWarning(
        s"Every batch of ${paths.root} writes snapshots of its stores, and nothing goes to the log, because the query's " +
          "provider is Spark's own and changelog checkpointing is off. Set " +
          s"${DstlCheckpointFileManager.ChangelogCheckpointing}=true on the session that starts the query."
      )

  /** Uploads what waits, at once. */
  def flush(): Unit = uploads.ifMade.foreach(_.flush())

  def evictIdle(): Unit = cache.evictIdle()

  /** For how many nanoseconds nobody has used it. */
  def idleNanos: Long = nanoTime() - usedAt.get

  /** Bytes of this run that are on their way to storage. */
  def bytesInFlight: Long = uploads.ifMade.fold(0L)(_.bytesInFlight)

  def close(): Unit = uploads.ifMade.foreach(_.close())

  private def uploadsOnFirstUse: SegmentUploads = new SegmentUploads {
    override def put(key: SegmentKey, bytes: Array[Byte]): SegmentUpload = uploads.value.put(key, bytes)
    override def announce(): Unit = uploads.value.announce()
  }

  /** The batch log that has the segment. */
  private def locate(key: SegmentKey): Option[CachedLogFile] = {
    touch()
    runOf(key.batch).flatMap { by =>
      prefetchAfter(key.batch)
      Some(reader.batchLog(
        LogLayout.batchLog(key.batch, by),
        s"segment ${key.relativePath}"
      )).filter(_.entry(key).nonEmpty)
    }
  }

  /** Whoever replays one batch replays the next ones: fetch them meanwhile. */
  private def prefetchAfter(batch: Long): Unit = {
    val history = synchronized(committed.history)
    val next = (batch + 1 to batch + options.downloadThreads).flatMap(b =>
      history.runOf(b).map(LogLayout.batchLog(b, _))
    )
    cache.prefetch(next, withIndex = true)
  }

  /** Whose batch log counts for a batch; asks again when the batch is newer than what was known. */
  private def runOf(batch: Long): Option[UUID] = synchronized {
    if (batch > committed.last && isCurrent) {
      opened = coordinator.get.open()
      committed = committedNow()
    }
    committed.history.runOf(batch)
  }

  private def committedNow(): CommittedBatches = opened match {
    case OpenReply.Current(history, last) => CommittedBatches(last, history)
    case _ => CommittedBatches.load(paths.root, paths.base, paths.checkpoint, paths.log)
  }

  /** The history may still name batch logs that were truncated after it was written, so storage is asked which are left. */
  private def listFromStorage(storeDirectory: String): Seq[ListedSegment] = {
    val left = paths.log.list(new Path(paths.base, LogLayout.BatchesDirectory))
      .flatMap(stored => LogLayout.parseBatchLog(stored.path.getName)).toSet
    synchronized(committed.history).batches.filter(left).flatMap { case (batch, by) =>
      val log = reader.batchLog(LogLayout.batchLog(batch, by), s"the listing of store $storeDirectory")
      log.index.get.entries.filter(_.key.storeDirectory == storeDirectory)
        .map(entry => ListedSegment(entry.key.fileName, entry.length, 0L))
    }.toSeq
  }

  private def touch(): Unit = usedAt.set(nanoTime())

  private def warnOnce(): Unit =
    logWarning(
      s"The driver does not coordinate a log for ${paths.root}: changelogs are written as plain files, each task " +
        "waiting for its own. To write them to the log set spark.sql.streaming.checkpointFileManagerClass to " +
        s"${classOf[DstlCheckpointFileManager].getName} on the session that starts the query."
    )
}
