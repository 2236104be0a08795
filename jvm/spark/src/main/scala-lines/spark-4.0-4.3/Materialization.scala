// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.{File, FileInputStream}
import java.util.concurrent.{Executor, TimeUnit}

import scala.concurrent.{ExecutionContext, Future}
import scala.util.Using
import scala.util.control.NonFatal

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.SegmentKey
import sparkdstl.log.transport.{SealedPart, SealedSegment}
import sparkdstl.log.upload.PendingChunk
import sparkdstl.log.worker.{SealedStore, SnapshotUploads, StoreSnapshot}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.RocksDBImmutableFile
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources

/**
 * Writes the snapshots of one store to the log, one at a time, while tasks run: files that are not in data files are uploaded in
 * the background, and a later seal of the store carries the snapshot into its commit entry. A failed upload is retried; the log
 * is retained meanwhile. Thread-safe.
 *
 * @param loggingId names the store in logs
 * @param files     the store's snapshots
 * @param confirmed called with a snapshot that a commit entry holds; closes it
 */
private[store] final class Materialization(
    loggingId: String,
    options: LogOptions,
    resources: ProcessResources,
    files: => DstlRocksDBFileManager,
    confirmed: RocksDBSnapshot => Unit
) extends Logging {
  import Materialization._

  private val threads: Executor = resources.snapshotThreads(options)
  private val timer = resources.runtime.timer
  private implicit val executor: ExecutionContext = ExecutionContext.parasitic

  // Guarded by this.
  private var underWay = Option.empty[Work]
  private var missed = false
  private var closed = false
  private var replacements = 0L
  private var failure: Option[Throwable] = None

  /** Whether one is under way. */
  def isBusy: Boolean = synchronized(underWay.nonEmpty)

  /** Whether the last one was lost before its commit entry: then the next commit makes another. */
  def isWantedAgain: Boolean = synchronized(missed)

  /**
   * The local state. A task takes it before its commit: afterwards another attempt may replace the state before the task's seal
   * is sent.
   */
  def local: LocalState = synchronized(new LocalState(underWay.map(new Carried(_)), replacements))

  /**
   * Begins to upload a snapshot of what a task has just committed. Discards the snapshot if another is under way, or if the local
   * state was replaced since the task changed it.
   */
  def begin(snapshot: RocksDBSnapshot, of: LoggedStore, changed: LocalState): Unit = {
    val work = new Work(snapshot, of, new StoreSnapshot(snapshot.version), timer.nowNanos)
    val begins = synchronized {
      val begins = underWay.isEmpty && !closed && changed.replacements == replacements
      if (begins) {
        underWay = Some(work)
        missed = false
      }
      begins
    }
    if (begins) {
      resources.materializations.started()
      onThread(work)(upload(work))
    } else snapshot.close()
  }

  /** The snapshot that was under way when a task committed further changes, for the task's seal. */
  private final class Carried(work: Work) extends SealedStore {
    override def carried(batch: Long): Vector[SealedSegment] = work.transit.carry(batch)

    override def accepted(carried: Boolean, notTaken: Option[Vector[String]]): Unit =
      work.transit.accepted(carried, notTaken) match {
        case StoreSnapshot.Fate.Pending =>
        case StoreSnapshot.Fate.Held => onThread(work)(held(work))
        case StoreSnapshot.Fate.Missing(gone) =>
          files.uploadedFiles.forget(gone)
          resources.materializations.failed()
          logWarning(
            s"The snapshot of version ${work.snapshot.version} of $loggingId consists of data files that may be " +
              "gone; another one is made, and the log is kept"
          )
          lost(work)
      }

    override def givenUp(): Unit = {
      work.transit.givenUp()
      if (!work.transit.isUnderWay && isCurrent(work)) lost(work)
    }
  }

  private def isCurrent(work: Work): Boolean = synchronized(underWay.contains(work))

  /** Drops the snapshot under way, because its local state is replaced: no later seal proves that it was committed. */
  def abandon(): Unit = synchronized {
    replacements += 1
    underWay
  }.foreach { work =>
    work.transit.abandon()
    resources.materializations.abandoned()
    lost(work)
  }

  /** Fails after too many failed attempts at a snapshot, if the options say that the query fails then. */
  def refuseIfFailed(): Unit = if (options.materializeFailsQuery) synchronized(failure).foreach(throw _)

  /** Called when the store is unloaded: no later seal carries the snapshot under way. */
  def close(): Unit = {
    synchronized { closed = true }
    abandon()
  }

  /** A fatal error ends this snapshot, and reaches the thread's handler: Spark's ends an executor without memory. */
  private def onThread(work: Work)(body: => Unit): Unit =
    try threads.execute { () =>
        try body
        catch {
          case fatal: VirtualMachineError =>
            try logError(s"Snapshot of version ${work.snapshot.version} of $loggingId ended with a fatal error", fatal)
            finally lost(work)
            throw fatal
          case error: Throwable => failed(work, error)
        }
      }
    catch {
      case error: Throwable =>
        lost(work)
        if (!NonFatal(error)) throw error
    }

  /** Uploads the files that are not in data files yet; then the next seal can carry the snapshot. */
  private def upload(work: Work): Unit =
    work.store.worker.flatMap(worker => resources.waiting.on(worker.snapshotUploads())) match {
      case None => lost(work)
      case Some(uploads) =>
        work.restart()
        val zip = files.pack(work.snapshot)
        val key = work.store.snapshotKey(work.snapshot.version, work.snapshot.uniqueId)
          .getOrElse(throw new IllegalStateException(s"${work.store.directory} is no directory of a store"))
        val immutable = work.snapshot.fileMapping.valuesIterator.map(_.immutableFile).toVector
        val namedFiles = immutable.map(segmentOf(work, _, uploads))
        val namedZip =
          if (zip.length <= options.inlineMaxSegmentSize) () => SealedSegment(key, None, Vector(SealedPart.Inline(zip)))
          else put(work, key, zip.grouped(chunkSize), uploads)
        // No thread waits for an upload, so files of many stores share an object.
        Future.sequence(work.chunks.map(_.location)).onComplete { uploaded =>
          onThread(work) {
            uploaded.failed.foreach(throw _)
            val named = namedFiles.map(_())
            work.files = immutable.map(_.dfsFileName).zip(named)
            FailPoints.hit("executor.snapshot-uploaded", key.batch)
            work.transit.complete(namedZip() +: named)
            resources.materializations.uploaded()
          }
        }
    }

  /** Uploads a file unless it is in a data file; the result makes its segment, to be called once the file is durable. */
  private def segmentOf(work: Work, file: RocksDBImmutableFile, uploads: SnapshotUploads): () => SealedSegment =
    files.uploadedFiles.of(file.dfsFileName) match {
      case Some(known) => () => known
      case None =>
        val key = files.keyOf(file, work.snapshot.version)
        Using.resource(new FileInputStream(new File(work.snapshot.checkpointDir, file.localFileName))) { in =>
          put(work, key, Iterator.continually(in.readNBytes(chunkSize)).takeWhile(_.nonEmpty), uploads)
        }
    }

  /** Uploads chunks; the result makes their segment, to be called once they are durable. */
  private def put(
      work: Work,
      key: SegmentKey,
      chunks: Iterator[Array[Byte]],
      uploads: SnapshotUploads
  ): () => SealedSegment = {
    val pending = chunks.map { chunk =>
      val pending = resources.waiting.on(uploads.put(key, chunk))
      work.uploads(pending, chunk.length)
      pending
    }.toVector
    () =>
      SealedSegment(
        key,
        None,
        pending.map(chunk => SealedPart.Stored(resources.waiting.on(chunk.location)))
      )
  }

  private def held(work: Work): Unit = {
    synchronized { failure = None }
    work.files.foreach { case (name, segment) => files.uploadedFiles.note(name, segment) }
    files.uploadedFiles.retain(work.files.map(_._1).toSet)
    files.cache(work.snapshot.checkpointDir, work.snapshot.fileMapping.valuesIterator.map(_.immutableFile).toVector)
    val millis = TimeUnit.NANOSECONDS.toMillis(timer.nowNanos - work.startedNanos)
    resources.materializations.completed(work.uploadedBytes, millis)
    logInfo(s"Snapshot of version ${work.snapshot.version} of $loggingId is in a commit entry after $millis ms: " +
      s"${work.files.size} files, ${work.uploadedBytes} bytes uploaded")
    if (!synchronized(closed)) confirmed(work.snapshot)
    ended(work)
  }

  private def failed(work: Work, error: Throwable): Unit =
    if (!work.transit.isUnderWay) {
      logInfo(s"The work on a snapshot of $loggingId that is no longer needed ended with an error", error)
      ended(work)
    } else {
      work.failures += 1
      resources.materializations.failed()
      val version = work.snapshot.version
      if (work.failures < options.materializeMaxFailures) {
        logWarning(s"Snapshot of version $version of $loggingId failed; it is tried again, and the log is kept", error)
        val delay = math.min(LongestDelayMillis, FirstDelayMillis << math.min(work.failures - 1, 10))
        try timer.schedule(delay)(() => onThread(work)(upload(work))): Unit
        catch { case NonFatal(_) => lost(work) }
      } else {
        val named = ProtocolErrors.materializationFailed(loggingId, version, work.failures, error)
        synchronized { failure = Some(named) }
        logError(named.getMessage, error)
        ended(work)
      }
    }

  private def lost(work: Work): Unit = {
    synchronized { missed = true }
    ended(work)
  }

  private def ended(work: Work): Unit =
    try {
      work.transit.abandon()
      work.snapshot.close()
    } finally synchronized { if (underWay.contains(work)) underWay = None }

  private def chunkSize: Int = math.min(ChunkSize, options.preemptivePersistThreshold).toInt
}

private object Materialization {

  /**
   * A store's local state.
   *
   * @param carried the snapshot of it that is under way
   * @param replacements the number of earlier local states
   */
  final class LocalState(val carried: Option[SealedStore], private[Materialization] val replacements: Long)

  private val ChunkSize = 4L * 1024 * 1024
  private val FirstDelayMillis = 1000L
  private val LongestDelayMillis = 60000L

  /** Used by one thread at a time. */
  private final class Work(
      val snapshot: RocksDBSnapshot,
      val store: LoggedStore,
      val transit: StoreSnapshot,
      val startedNanos: Long
  ) {
    @volatile var chunks = Vector.empty[PendingChunk]
    @volatile var files = Vector.empty[(String, SealedSegment)]
    @volatile var uploadedBytes = 0L
    @volatile var failures = 0

    def uploads(chunk: PendingChunk, bytes: Int): Unit = {
      transit.uploads(chunk)
      chunks :+= chunk
      uploadedBytes += bytes
    }

    def restart(): Unit = {
      transit.restart()
      chunks = Vector.empty
      uploadedBytes = 0
    }
  }
}
