package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.{File, FileInputStream}
import java.util.concurrent.{Executor, TimeUnit}

import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success, Using}
import scala.util.control.NonFatal

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.SegmentKey
import sparkdstl.log.transport.{SealedPart, SealedSegment}
import sparkdstl.log.upload.PendingChunk
import sparkdstl.log.worker.{Offered, SegmentChunk, SnapshotUploads}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.RocksDBImmutableFile
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedSnapshots
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * Brings the snapshots of one store into the log, one at a time, while tasks go on: what of their files is not in data files
 * is uploaded, and the driver is asked to have a commit entry hold them. Until one does they do not count. What fails is
 * tried again; the log is kept meanwhile. Thread-safe.
 *
 * @param loggingId names the store in logs
 * @param files     the store's snapshots
 * @param confirmed told of a snapshot that a commit entry holds; closes it
 * @param run       the log of the query's run
 */
private[store] final class Materialization(
    loggingId: String,
    options: LogOptions,
    environment: DstlEnvironment,
    files: => DstlRocksDBFileManager,
    confirmed: RocksDBSnapshot => Unit,
    run: () => Option[WorkedRun]
) extends Logging {
  import Materialization._

  private val threads: Executor = environment.snapshotThreads(options)
  private val timer = environment.runtime.timer
  private implicit val executor: ExecutionContext = ExecutionContext.parasitic

  // Guarded by this.
  private var underWay = Option.empty[Work]
  private var closed = false
  private var failure: Option[Throwable] = None

  /** Whether one is under way. */
  def isBusy: Boolean = synchronized(underWay.nonEmpty)

  /** Begins with a snapshot of what `attempt` has committed; while another is under way it is given up. */
  def begin(snapshot: RocksDBSnapshot, storeDirectory: String, attempt: Long): Unit = {
    val work = new Work(snapshot, storeDirectory, attempt, timer.nowNanos)
    val begins = synchronized {
      val begins = underWay.isEmpty
      if (begins) underWay = Some(work)
      begins
    }
    if (begins) {
      environment.materializations.started()
      onThread(work)(upload(work))
    } else snapshot.close()
  }

  /** The attempt does not count. The driver will not take its snapshot, and another one need not wait until it has said so. */
  def abandon(attempt: Long): Unit = synchronized {
    if (underWay.exists(_.attempt == attempt)) underWay = None
  }

  /** Fails if so many snapshots in a row have failed that the query is to fail, if it is to. */
  def refuseIfFailed(): Unit = if (options.materializeFailsQuery) synchronized(failure).foreach(throw _)

  /** The store is unloaded. What was begun goes on: its files are its own. */
  def close(): Unit = synchronized { closed = true }

  private def onThread(work: Work)(body: => Unit): Unit =
    try threads.execute { () =>
        try body
        catch { case NonFatal(error) => failed(work, error) }
      }
    catch { case NonFatal(_) => ended(work) }

  /** Whatever is not in data files yet goes there, then the driver is asked. */
  private def upload(work: Work): Unit =
    run().flatMap(_.worker).flatMap(worker => environment.waiting.on(worker.snapshotUploads())) match {
      case None => ended(work)
      case Some(uploads) =>
        work.discard()
        val zip = files.pack(work.snapshot)
        val key = LoggedSnapshots.key(work.storeDirectory, work.snapshot.version, work.snapshot.uniqueId)
          .getOrElse(throw new IllegalStateException(s"${work.storeDirectory} is no directory of a store"))
        val immutable = work.snapshot.fileMapping.valuesIterator.map(_.immutableFile).toVector
        val namedFiles = immutable.map(segmentOf(work, _, uploads))
        val isInline = zip.length <= options.inlineMaxSegmentSize && !work.isOverBudget
        val namedZip =
          if (isInline) () => SealedSegment(key, None, Vector(SealedPart.Inline(zip)))
          else put(work, key, zip.grouped(chunkSize), uploads)
        // No thread waits: so the files of many stores come together in one object.
        Future.sequence(work.chunks.map(_.location)).onComplete { uploaded =>
          onThread(work) {
            uploaded.failed.foreach(throw _)
            val offered = namedZip() +: namedFiles.map(_())
            work.files = immutable.map(_.dfsFileName).zip(offered.tail)
            FailPoints.hit("executor.snapshot-uploaded", key.batch)
            offer(work, offered, uploads)
          }
        }
    }

  /** How a file is to be named to the driver, once it is durable. */
  private def segmentOf(work: Work, file: RocksDBImmutableFile, uploads: SnapshotUploads): () => SealedSegment =
    files.uploadedFiles.of(file.dfsFileName) match {
      case Some(known) => () => known
      case None =>
        val key = files.keyOf(file, work.snapshot.version)
          .getOrElse(throw new IllegalStateException(s"a snapshot cannot consist of ${file.dfsFileName}"))
        Using.resource(new FileInputStream(new File(work.snapshot.checkpointDir, file.localFileName))) { in =>
          put(work, key, Iterator.continually(in.readNBytes(chunkSize)).takeWhile(_.nonEmpty), uploads)
        }
    }

  /** Uploads chunks; what is returned names them, once they are durable. */
  private def put(
      work: Work,
      key: SegmentKey,
      chunks: Iterator[Array[Byte]],
      uploads: SnapshotUploads
  ): () => SealedSegment = {
    val pending = chunks.map { chunk =>
      val pending = environment.waiting.on(uploads.put(key, chunk))
      work.chunks :+= pending
      work.uploadedBytes += chunk.length
      pending
    }.toVector
    () =>
      SealedSegment(
        key,
        None,
        pending.map(chunk => SealedPart.Stored(SegmentChunk.part(environment.waiting.on(chunk.location))))
      )
  }

  private def offer(work: Work, segments: Vector[SealedSegment], uploads: SnapshotUploads): Unit =
    uploads.offer(work.attempt, segments).onComplete {
      case Success(answer) => onThread(work)(answered(work, answer))
      // It may have been taken.
      case Failure(error) =>
        work.chunks = Vector.empty
        onThread(work)(throw error)
    }

  private def answered(work: Work, answer: Offered): Unit = answer match {
    case Offered.Held =>
      synchronized { failure = None }
      work.chunks = Vector.empty
      work.files.foreach { case (name, segment) => files.uploadedFiles.note(name, segment) }
      files.uploadedFiles.retain(work.files.map(_._1).toSet)
      files.keep(work.snapshot.checkpointDir, work.snapshot.fileMapping.valuesIterator.map(_.immutableFile).toVector)
      val millis = TimeUnit.NANOSECONDS.toMillis(timer.nowNanos - work.startedNanos)
      environment.materializations.completed(work.uploadedBytes, millis)
      logInfo(s"Snapshot of version ${work.snapshot.version} of $loggingId is in a commit entry after $millis ms: " +
        s"${work.files.size} files, ${work.uploadedBytes} bytes uploaded")
      if (!synchronized(closed)) confirmed(work.snapshot)
      ended(work)
    case Offered.OverBudget =>
      work.isOverBudget = true
      upload(work)
    case Offered.Refused(reason, missing, isCertain) =>
      files.uploadedFiles.forget(missing)
      if (!isCertain) work.chunks = Vector.empty
      if (missing.nonEmpty) throw new SnapshotNotTaken(reason)
      environment.materializations.unwanted()
      logInfo(s"Snapshot of version ${work.snapshot.version} of $loggingId is not wanted: $reason")
      ended(work)
    case Offered.Ended =>
      work.chunks = Vector.empty
      ended(work)
  }

  private def failed(work: Work, error: Throwable): Unit = {
    work.failures += 1
    environment.materializations.failed()
    val version = work.snapshot.version
    if (work.failures < options.materializeMaxFailures) {
      logWarning(s"Snapshot of version $version of $loggingId failed; it is tried again, and the log is kept", error)
      val delay = math.min(LongestDelayMillis, FirstDelayMillis << math.min(work.failures - 1, 10))
      try timer.schedule(delay)(() => onThread(work)(upload(work))): Unit
      catch { case NonFatal(_) => ended(work) }
    } else {
      val named = ProtocolErrors.materializationFailed(loggingId, version, work.failures, error)
      synchronized { failure = Some(named) }
      logError(named.getMessage, error)
      ended(work)
    }
  }

  private def ended(work: Work): Unit = {
    work.discard()
    work.snapshot.close()
    synchronized { if (underWay.contains(work)) underWay = None }
  }

  private def chunkSize: Int = math.min(ChunkSize, options.preemptivePersistThreshold).toInt
}

private object Materialization {
  private val ChunkSize = 4L * 1024 * 1024
  private val FirstDelayMillis = 1000L
  private val LongestDelayMillis = 60000L

  /** Used by one thread at a time. */
  private final class Work(
      val snapshot: RocksDBSnapshot,
      val storeDirectory: String,
      val attempt: Long,
      val startedNanos: Long
  ) {
    // On their way, or uploaded, and named by nobody yet.
    @volatile var chunks = Vector.empty[PendingChunk]
    @volatile var files = Vector.empty[(String, SealedSegment)]
    @volatile var uploadedBytes = 0L
    @volatile var failures = 0
    @volatile var isOverBudget = false

    /** Nobody has been told of what was uploaded, or nobody wants it. */
    def discard(): Unit = {
      chunks.foreach(_.discard())
      chunks = Vector.empty
      uploadedBytes = 0
    }
  }
}

/** The driver cannot have a commit entry hold the snapshot as it was offered. */
private final class SnapshotNotTaken(reason: String) extends java.io.IOException(s"the driver did not take it: $reason")
