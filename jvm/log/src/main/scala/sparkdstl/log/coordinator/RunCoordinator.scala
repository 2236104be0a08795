package sparkdstl.log.coordinator

import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.attempts.{AttemptLedger, InlineBudget}
import sparkdstl.log.coordinator.ownership.{RunStart, StartOfRun}
import sparkdstl.log.coordinator.retention.{LogSize, OrphanSweep, Retention}
import sparkdstl.log.coordinator.snapshots.RunSnapshots
import sparkdstl.log.error.{DstlException, ProtocolErrors}
import sparkdstl.log.format.{CommitEntry, EncodedEntry, EntryLink, LogLayout, QueryLocation, Writer}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport._

/**
 * The driver's side of one run of one query: takes what tasks have sealed, and when Spark is about to commit a batch waits
 * until it is durable (the barrier) and creates the commit entry that carries it. Afterwards it lets go of what nobody
 * needs any more.
 *
 * Promise: when [[commit]] succeeds, the state that the batch leads to can be rebuilt from storage alone. When it fails
 * with anything but DSTL_COMMIT_UNKNOWN, the batch was not committed by this run and never will be.
 *
 * @param accumulator
 *   in which tasks name their attempts
 * @param timeoutMillis
 *   of a single request that is not part of a commit
 */
final class RunCoordinator private (
    location: QueryLocation,
    options: LogOptions,
    writer: Writer,
    checkpoint: StorageClient,
    log: StorageClient,
    executors: ExecutorLink,
    budget: InlineBudget,
    accumulator: Long,
    start: StartOfRun,
    entries: EntryReader,
    metrics: CommitMetrics,
    runtime: ProtocolRuntime
) {
  import RunCoordinator._
  private implicit val executor: ExecutionContext = runtime.executor

  val id: RunId = RunId(location.root.toString, writer.run)

  private val ledger = new AttemptLedger(budget)
  // A link that throws has told nobody.
  private val link: ExecutorLink = (to, of, message) =>
    try executors.tell(to, of, message)
    catch { case NonFatal(error) => Future.failed(error) }
  private val barriers = new Barrier(id, ledger, link, runtime)
  private val entryWriter = new EntryWriter(location, checkpoint, entries, start.exclusive, runtime)
  private val storesAtStart: Set[String] = start.newest match {
    case EntryFound.Logged(entry) => entry.changedStores
    case _ => Set.empty
  }
  private val restart = new RestartWatch(location.root.toString, storesAtStart, runtime)
  private val retention = new Retention(
    location,
    checkpoint,
    log,
    entries,
    start.entries,
    storesAtStart,
    options.commitTimeoutMs,
    runtime,
    oldest => snapshots.bases(oldest),
    (batches, files) => snapshots.letGoWith(batches, files),
    error => {
      metrics.deletionFailed()
      logger.warn(s"Could not delete what ${location.root} no longer needs; it is tried again", error)
    }
  )
  private val logSize = new LogSize(start.entryBytes)
  private val chain = new EntryChain(start.entries.lastOption, start.newest)
  private lazy val snapshots: RunSnapshots = new RunSnapshots(
    entries,
    writer,
    start.newest,
    options.materializeEnabled,
    () =>
      checkpoint.list(location.commits, options.commitTimeoutMs).flatMap(_.asFuture)
        .map(LogLayout.batchesIn(_).toSet),
    () => retention.batches,
    retention.stands,
    () => chain.newest,
    ledger,
    budget,
    discard,
    runtime
  )

  private lazy val answers = new ExecutorAnswers(
    location,
    writer,
    FromDriver.Opened(accumulator, writer.epoch, options.inlineMaxBatchSize),
    ledger,
    retention,
    snapshots,
    restart,
    metrics,
    () => isAtWork,
    () => barrier
  )

  // All guarded by this.
  private var commitUnderWay: Future[Unit] = Future.unit
  // When no other run had got further than this one, for certain. That is when it asked for its newest entry: until it heard
  // that the entry is there, its process may have been stopped for as long as others take to commit, and to purge.
  private var uncontestedNanos = start.atNanos
  private var lastBarrier: Option[BarrierReport] = None
  private var phase: Phase = Running
  private var swept = false

  ledger.forget(chain.newest): Unit

  def run: UUID = writer.run

  def epoch: Long = writer.epoch

  /** Whether storage has refused, at the start, to create an object a second time. */
  def createsExclusively: Boolean = start.exclusive

  /** How many commit entries this run knows of. */
  def retainedEntries: Int = retention.batches.size

  /** How many bytes these have, with the changes that they name in data files. */
  def retainedBytes: Long = logSize.bytes(retention.batches)

  /** How many snapshots wait for a commit entry. */
  def waitingSnapshots: Int = snapshots.waiting

  /** Stores that no task has come to since the query was started again; 0 once a batch was committed. */
  def awaitedStores: Int = restart.awaited

  /** The last batch that this run knows to be committed; -1 if there is none. */
  def lastCommitted: Long = chain.newest

  /** How the newest barrier went. */
  def barrier: Option[BarrierReport] = synchronized(lastBarrier)

  /** Whether `commits/<batch>` is known not to exist, unless another driver has taken over. */
  def knowsAbsent(batch: Long): Boolean = synchronized(phase == Running) && batch > chain.newest

  /** Whether tasks have sealed anything for `batch`. */
  def hasSeals(batch: Long): Boolean = ledger.hasSeals(batch)

  /** Answers an executor. Does not throw. */
  def answer(from: String, message: ToDriver): Future[FromDriver] =
    try answers.to(from, message)
    catch { case NonFatal(error) => Future.failed(error) }

  /** An executor is gone: what it had not uploaded is lost. */
  def executorLost(lost: String, reason: String): Unit = ledger.executorLost(lost, reason)

  /**
   * Commits a batch: everything its tasks sealed becomes durable, then the commit entry is created.
   *
   * @param content
   *   the commit entry as Spark wrote it
   * @param reported
   *   task attempts whose results Spark has taken for this batch, in the order in which it did
   */
  def commit(batch: Long, content: Array[Byte], reported: Seq[Long]): Future[Unit] = {
    val startedNanos = runtime.timer.nowNanos
    def left: Long = math.max(1L, options.commitTimeoutMs - millisSince(startedNanos))
    val ended = Promise[Unit]()
    val began = synchronized {
      val running = phase == Running
      if (running) {
        phase = Committing
        commitUnderWay = ended.future
      }
      running
    }
    if (!began) Future.failed(ProtocolErrors.runEnded(run))
    else {
      val written = for {
        _ <- close(batch, content, reported)
        segments <- barriers.await(batch, options.commitTimeoutMs)
        waitMillis = millisSince(startedNanos)
        previous <- chain.before(batch)(lookAt)
        (offered, listed) <- snapshots.forEntry(batch, segments)
        link = EntryLink(runtime.random.nextUuid(), previous)
        entry = CommitEntry
          .encode(content, batch, link, writer, location.configuredBase, segments ++ offered, Some(listed))
        _ = refuseIfEnded()
        askedNanos = runtime.timer.nowNanos
        _ <- entryWriter.write(batch, entry, link.previous, () => isLongSilent, left)
      } yield (entry, waitMillis, askedNanos)
      val committed = written.transform {
        case Success((entry, waitMillis, askedNanos)) =>
          synchronized { uncontestedNanos = askedNanos }
          committedNow(batch, entry, waitMillis, millisSince(startedNanos) - waitMillis)
          Success(())
        case Failure(error) =>
          failed(error)
          Failure(error)
      }
      committed.onComplete(_ => ended.success(()))
      committed
    }
  }

  /** Whether it commits batches: no commit has failed and nobody has ended it. What it knows may be outdated otherwise. */
  def isAtWork: Boolean = synchronized(phase == Running || phase == Committing)

  /** Spark, or a user, wants `commits/<batch>` deleted. See [[Retention.askedToDelete]]. Fails unless [[isAtWork]]. */
  def deleteEntry(batch: Long): Future[Unit] =
    if (!isAtWork) Future.failed(ProtocolErrors.runEnded(run))
    else retention.askedToDelete(batch).transform { outcome =>
      val left = retention.batches.lastOption.getOrElse(-1L)
      if (chain.goBackTo(left)) {
        ledger.goBackTo(left)
        snapshots.goBackTo(left)
      }
      outcome
    }

  /** Ends the run: it commits and deletes nothing any more. Completes when what is under way has ended. */
  def close(): Future[Unit] = {
    val committing = synchronized {
      if (phase != Broken) phase = Ended
      commitUnderWay
    }
    barriers.end(ProtocolErrors.runEnded(run))
    restart.end()
    val retained = retention.close()
    committing.flatMap { _ =>
      ledger.end()
      snapshots.end()
      retained
    }
  }

  /** Nothing is sealed for the batch any more; losers are told not to build on what they have. */
  private def close(batch: Long, content: Array[Byte], reported: Seq[Long]): Future[Unit] =
    Future {
      val ids = CommitEntry.checkpointIds(location.entry(batch), content).map(_._3).toSet
      val closing = ledger.close(batch, ids, reported)
      closing.losers.groupBy { case (executor, attempt, _) => (executor, attempt) }.foreach {
        case ((executor, attempt), stores) =>
          link.tell(executor, id, ToExecutor.Drop(attempt, stores.map(_._3)))
      }
      if (closing.missingIds.nonEmpty && ledger.hasSeals(batch))
        throw ProtocolErrors.missingCheckpointIds(batch, closing.missingIds.toVector.sorted)
    }

  /**
   * An entry that appeared after this run had looked, and that Spark goes on from. If a run of higher epoch wrote it, or it
   * does not say who did, that one may have swept away what this run has uploaded: [[retention.OrphanSweep]].
   */
  private def lookAt(batch: Long): Future[EntryFound] = entries.read(batch).map { found =>
    found match {
      case EntryFound.Logged(entry) if entry.index.writer.epoch > epoch =>
        val other = entry.index.writer
        throw ProtocolErrors.fenced(location.entry(batch), Some(other.run -> other.host))
      case EntryFound.Plain if !retention.stands(batch) => throw ProtocolErrors.fenced(location.entry(batch), None)
      case _ =>
    }
    // Those below it count as well: it may tell of snapshots that they hold.
    if (found != EntryFound.Absent) unseen(batch + 1).foreach(retention.noteUnseen)
    snapshots.seen(found)
    found
  }

  /** Batches below this one of whose entries this run has not heard. */
  private def unseen(batch: Long): Iterable[Long] = math.max(chain.newest + 1, batch - UnseenEntries) until batch

  private def refuseIfEnded(): Unit = if (synchronized(phase) != Committing) throw ProtocolErrors.runEnded(run)

  private def isLongSilent: Boolean =
    synchronized(millisSince(uncontestedNanos)) >= options.fencingRelistAfterMs

  /** The entry stands. Nothing that fails from here on makes the batch any less committed. */
  private def committedNow(batch: Long, entry: EncodedEntry, waitMillis: Long, writeMillis: Long): Unit =
    try finish(batch, entry, waitMillis, writeMillis)
    catch {
      case NonFatal(error) =>
        logger.warn(s"Batch $batch of ${location.root} is committed; what follows has failed", error)
    }

  private def finish(batch: Long, entry: EncodedEntry, waitMillis: Long, writeMillis: Long): Unit = {
    val files = entry.index.entries.iterator.flatMap(_.parts).flatMap(_.file).toSet
    val report = BarrierReports.of(batch, entry, waitMillis, writeMillis) {
      logSize.committed(batch, _, retention.batches)
    }
    unseen(batch).foreach(retention.noteUnseen)
    chain.committed(batch, entry.index)
    synchronized {
      lastBarrier = Some(report)
      if (phase == Committing) phase = Running
    }
    metrics.committed(report)
    restart.end()
    snapshots.committed(batch, entry.index)
    retention.committed(batch, entry.index.changedStores, files)
    discard(ledger.committed(batch))
    logger.info(
      s"Batch $batch: ${report.segments} segments durable after $waitMillis ms, commit entry of ${report.entryBytes} " +
        s"bytes written in $writeMillis ms"
    )
    sweepOnce()
  }

  private def failed(error: Throwable): Unit = {
    metrics.failed()
    restart.end()
    val unknown = error match {
      case named: DstlException => named.condition == "DSTL_COMMIT_UNKNOWN"
      case _ => false
    }
    synchronized { phase = if (unknown) Broken else Ended }
    // After an unknown commit nothing may be deleted that it may have named; after another driver's, nothing at all.
    retention.close(): Unit
    ledger.end()
    snapshots.end()
  }

  private def sweepOnce(): Unit =
    if (start.exclusive && synchronized { val first = !swept && phase == Running; swept ||= first; first })
      new OrphanSweep(location, checkpoint, log, entries, epoch, snapshots.isNamed, options.commitTimeoutMs, runtime)
        .run().onComplete {
          case Success(0) =>
          case Success(count) =>
            logger.info(s"Deleted $count files in ${location.base} that earlier runs left uncommitted")
          case Failure(error) =>
            synchronized { swept = false }
            logger.warn(s"Could not delete what earlier runs left behind in ${location.base}; it is tried again", error)
        }

  private def discard(files: Set[String]): Unit =
    if (files.nonEmpty && isAtWork)
      log.delete(files.toVector.map(location.file), options.commitTimeoutMs).flatMap(_.asFuture).failed.foreach { error =>
        logger.warn(s"Could not delete ${files.size} data files that no commit names; a later run does", error)
      }

  private def millisSince(nanos: Long): Long = TimeUnit.NANOSECONDS.toMillis(runtime.timer.nowNanos - nanos)
}

object RunCoordinator {
  private val logger = LoggerFactory.getLogger(classOf[RunCoordinator])

  /** Entries below its first commit of which a run may not have heard: a predecessor's last one, and some to spare. */
  private val UnseenEntries = 10L

  private sealed trait Phase
  private case object Running extends Phase
  private case object Committing extends Phase

  /** An earlier commit failed, or the run was ended. */
  private case object Ended extends Phase

  /** What became of an earlier commit is not known. */
  private case object Broken extends Phase

  /**
   * Begins a run: reads what is committed and claims an epoch.
   *
   * @param checkpoint
   *   storage of the checkpoint
   * @param log
   *   storage of data files
   * @param accumulator
   *   the number of the accumulator in which tasks name their attempts
   * @param metrics
   *   counts, for all runs of the process
   */
  def begin(
      location: QueryLocation,
      options: LogOptions,
      run: UUID,
      host: String,
      application: String,
      checkpoint: StorageClient,
      log: StorageClient,
      executors: ExecutorLink,
      budget: InlineBudget,
      accumulator: Long,
      metrics: CommitMetrics,
      runtime: ProtocolRuntime
  ): Future[RunCoordinator] = {
    implicit val executor: ExecutionContext = runtime.executor
    val entries = new EntryReader(location, checkpoint, options.commitTimeoutMs, IndexFetchLength, runtime)
    new RunStart(location, checkpoint, entries, run, host, options.commitTimeoutMs, runtime).begin().map { start =>
      if (!start.exclusive) {
        if (options.requireExclusiveCreate) throw ProtocolErrors.notExclusive(location.root)
        logger.warn(
          s"The storage of ${location.root} does not create objects exclusively. Of two drivers on this checkpoint both may " +
            "commit a batch before one of them notices; this one looks again before and after each commit entry, and deletes " +
            "nothing of other runs. Set spark.sql.streaming.stateStore.dstl.storage.requireExclusiveCreate=true to refuse " +
            "such storage."
        )
      }
      val writer = Writer(run, start.epoch, host, application)
      new RunCoordinator(
        location,
        options,
        writer,
        checkpoint,
        log,
        executors,
        budget,
        accumulator,
        start,
        entries,
        metrics,
        runtime
      )
    }
  }

  /** Of an entry's end, to know its index: enough for some thousand segments. */
  private val IndexFetchLength = 256 * 1024
}
