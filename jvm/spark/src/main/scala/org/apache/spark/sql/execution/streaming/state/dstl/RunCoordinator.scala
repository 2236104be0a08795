package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID
import java.util.concurrent.{CompletableFuture, Executor, TimeUnit, TimeoutException}

import org.apache.hadoop.fs.Path

import sparkdstl.log.FailPoints
import sparkdstl.log.config.LogOptions
import sparkdstl.log.format._
import sparkdstl.log.storage.LogStorage
import sparkdstl.log.upload.ObjectDiscarder

import org.apache.spark.internal.Logging

/**
 * How the newest barrier went; shown in the next batch's progress.
 *
 * @param waitMs  until everything sealed was durable
 * @param writeMs for the batch log
 * @param bytes   of the batch log, index included
 */
private[dstl] final case class BarrierReport(batch: Long, waitMs: Long, writeMs: Long, bytes: Long, segments: Int)

/**
 * Where one query's checkpoint and log are, and what to reach them with.
 *
 * @param configuredBase the log's base path if one was configured
 */
private[dstl] final case class QueryPaths(
    root: Path,
    base: Path,
    configuredBase: Option[String],
    checkpoint: LogStorage,
    log: LogStorage
)

/**
 * The driver's side of one run of one query: takes the tasks' promises, and when Spark is about to commit a batch waits
 * until they are kept (the barrier), publishes the batch log and creates the commit entry. Afterwards it knows which
 * segments are in the log, and discards what nobody wants any more.
 *
 * Invariant: a commit entry with a batch log is created only after that batch log, and all data files it names, are
 * durable.
 *
 * @param executors reaches the executors that hold bytes which are to be uploaded
 * @param writer    this driver, as named to others
 * @param background reads and lists log files while the query goes on
 */
private[dstl] final class RunCoordinator(
    paths: QueryPaths,
    options: LogOptions,
    writer: Writer,
    writes: RetriedWrites,
    discarder: ObjectDiscarder,
    background: Executor,
    executors: ExecutorDirectory,
    atStart: CommittedBatches,
    nowMillis: () => Long
) extends Logging {

  val run: UUID = writer.run

  private val seals = new BatchSeals(options.inlineMaxBatchSize)
  private val catalog = new LogCatalog
  private val entries = new CommitEntryWriter(paths.checkpoint, writes)
  private val truncation = new Truncation(paths, run, catalog, discarder, background)

  // Guarded by this.
  private var committed = atStart
  private var swept = false
  @volatile private var barrier: Option[BarrierReport] = None

  seals.forget(atStart.last)

  /** Starts reading, in the background, which segments are in the log. */
  def start(): Unit = truncation.load(atStart.history)

  def open(): OpenReply = synchronized(OpenReply.Current(committed.history, committed.last))

  def lastBarrier: Option[BarrierReport] = barrier

  def seal(request: SealRequest): SealReply = {
    FailPoints.hit("driver.before-first-seal", request.key.batch)
    seals.seal(request)
  }

  /** Whether tasks have sealed anything for `batch`. */
  def hasSeals(batch: Long): Boolean = seals.keysOf(batch).nonEmpty

  def report(report: UploadReport): Unit = seals.report(report)

  def executorLost(executor: String, reason: String): Unit = seals.executorLost(executor, reason)

  /** The segments of a store, as listing its directory would show them if they were files. */
  def list(storeDirectory: String): CompletableFuture[Seq[ListedSegment]] =
    truncation.loaded.thenApply(_ => catalog.list(storeDirectory))

  /** Drops a segment; false if it is not in the log. */
  def release(key: SegmentKey): CompletableFuture[Boolean] = truncation.loaded.thenApply(_ => truncation.release(key))

  /**
   * Commits a batch: everything its tasks sealed becomes durable, then the commit entry is created. On any error the
   * batch is not committed by this run, unless the reply to a commit entry that was created got lost.
   *
   * @param content the commit entry as Spark wrote it
   */
  def commit(batch: Long, entry: Path, content: Array[Byte]): Unit = {
    val started = nowMillis()
    FailPoints.hit("driver.seals-pending", batch)
    val keys = CommittedIds.select(paths, batch, entry, content, seals.close(batch))
    val log = if (keys.isEmpty) None else Some(writeBatchLog(batch, keys, started))
    FailPoints.hit("driver.after-batch-log", batch)
    val note = CommitNote(run, log.nonEmpty, writer.host, writer.application, paths.configuredBase)
    try entries.create(entry, CommitNote.append(content, note))
    catch {
      case e: FencedException =>
        if (log.nonEmpty) discarder.discard(new Path(paths.base, LogLayout.batchLog(batch, run)))
        throw e
    }
    FailPoints.hit("driver.after-commit-entry", batch)
    finish(batch, log)
  }

  private def writeBatchLog(batch: Long, keys: Vector[SegmentKey], started: Long): LogFileIndex = {
    val segments = awaitDurable(batch, keys)
    val durableAt = nowMillis()
    val inline = segments.flatMap(_.parts).collect { case Left(bytes) => bytes.length }.sum
    val file = new LogFileWriter(LogFileKind.BatchLog, inline + segments.size * 64)
    val index = LogFileIndex(
      LogFileKind.BatchLog,
      writer,
      Some(batch),
      synchronized(committed.history),
      segments.map(segment => SegmentEntry(segment.key, segment.parts.map(_.fold(file.append, identity))))
    )
    val content = file.finish(index)
    val path = new Path(paths.base, LogLayout.batchLog(batch, run))
    writes.replace(paths.log, path, content)
    val report =
      BarrierReport(batch, durableAt - started, nowMillis() - durableAt, content.length.toLong, segments.size)
    barrier = Some(report)
    logInfo(s"Batch $batch: ${report.segments} segments durable after ${report.waitMs} ms, batch log of " +
      s"${report.bytes} bytes written in ${report.writeMs} ms")
    index
  }

  private def awaitDurable(batch: Long, keys: Vector[SegmentKey]): Vector[DurableSegment] = {
    seals.holders(keys).foreach { executor =>
      executors.flush(executor, run).whenComplete { (_, error) =>
        if (error != null) seals.executorLost(executor, s"it cannot be reached: ${error.getMessage}")
      }
    }
    try seals.whenSettled(keys).get(options.commitTimeoutMs, TimeUnit.MILLISECONDS): Unit
    catch {
      case _: TimeoutException => throw DstlErrors.commitTimeout(batch, seals.unsettled(keys), options.commitTimeoutMs)
    }
    val (lost, durable) = seals.resolve(keys).partitionMap(identity)
    if (lost.nonEmpty) throw DstlErrors.lostSegments(batch, lost)
    durable
  }

  private def finish(batch: Long, log: Option[LogFileIndex]): Unit = {
    val file = LogLayout.batchLog(batch, run)
    log.foreach(index => catalog.add(file, index, nowMillis()))
    synchronized {
      val history = if (log.nonEmpty) committed.history.append(batch, run) else committed.history.upTo(batch - 1)
      // Before everything is loaded the catalog does not know the oldest batch that is still wanted.
      val oldest = if (truncation.isLoaded) catalog.oldestBatch.getOrElse(batch) else 0L
      committed = CommittedBatches(batch, history.from(oldest))
    }
    discardUnused(batch, log)
    seals.forget(batch)
    if (!swept && log.nonEmpty) {
      swept = true
      truncation.sweep(batch, synchronized(committed.history))
    }
  }

  private def discardUnused(batch: Long, log: Option[LogFileIndex]): Unit = {
    val used = log.iterator.flatMap(_.entries).flatMap(_.parts).flatMap(_.file).toSet
    val unused = seals.unusedFiles(batch, used).filterNot(catalog.isReferenced)
    discarder.discard(unused.toSeq.map(new Path(paths.base, _)))
  }
}
