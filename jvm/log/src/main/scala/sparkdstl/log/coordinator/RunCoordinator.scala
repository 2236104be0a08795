package sparkdstl.log.coordinator

import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.config.LogOptions
import sparkdstl.log.coordinator.attempts.{AttemptLedger, InlineBudget}
import sparkdstl.log.coordinator.ownership.{Claims, RunStart, StartedRun}
import sparkdstl.log.coordinator.retention.{Deleter, OrphanSweep, RetentionRounds}
import sparkdstl.log.coordinator.view.{Guarded, LogView, RunPhase, RunState, SnapshotIndex}
import sparkdstl.log.error.{DstlException, ProtocolErrors}
import sparkdstl.log.format._
import sparkdstl.log.read.{EntryFound, EntryReader, SnapshotLists}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport._

/**
 * The driver's side of one run of one query: takes what tasks have sealed, and when Spark is about to commit a batch waits
 * until it is durable (the barrier) and creates the commit entry that carries it. Afterwards it deletes what no version needs
 * any more.
 *
 * Promise: when [[commit]] succeeds, the state that the batch leads to can be rebuilt from storage alone. When it fails
 * with anything but DSTL_COMMIT_UNKNOWN, the batch was not committed by this run and never will be.
 *
 * @param state
 *   what the run knows of the log, and how far it has come
 * @param ended
 *   completed when the run ends
 */
final class RunCoordinator private (
    val id: RunId,
    setup: RunCoordinator.Setup,
    started: StartedRun,
    state: Guarded[RunState],
    ledger: AttemptLedger,
    parts: RunCoordinator.Parts,
    metrics: CommitMetrics,
    ended: Promise[Throwable]
) {
  import RunCoordinator._
  import setup._
  private implicit val executor: ExecutionContext = runtime.executor

  def run: UUID = id.run

  def epoch: Long = started.epoch

  /** Whether storage has refused, at the start, to create an object a second time. */
  def createsExclusively: Boolean = started.exclusive

  /** How many commit entries this run knows of. */
  def retainedEntries: Int = view.entries.size

  /** How many bytes these have, with the changes that they name in data files. */
  def retainedBytes: Long = view.bytes

  /** Stores that no task has come to since the query was started again; 0 once a batch was committed. */
  def awaitedStores: Int = parts.restart.awaited

  /** Directories of the stores that the newest entry with a log has changed. */
  def stores: Set[String] = view.stores

  /** The last batch that this run knows to be committed; -1 if there is none. */
  def lastCommitted: Long = view.newest

  /** How the newest barrier went. */
  def barrier: Option[BarrierReport] = state.get.barrier

  /** Whether `commits/<batch>` is known not to exist, unless another driver has taken over. */
  def knowsAbsent(batch: Long): Boolean = {
    val now = state.get
    now.phase == RunPhase.Running && batch > now.view.newest
  }

  /** Whether tasks have sealed anything for `batch`. */
  def hasSeals(batch: Long): Boolean = ledger.hasSeals(batch)

  /** Whether it commits batches: no commit has failed, and it was not ended. Otherwise what it knows may be outdated. */
  def isAtWork: Boolean = state.get.isAtWork

  /** Answers an executor. Does not throw. */
  def answer(from: String, message: ToDriver): Future[FromDriver] =
    try answerOf(from, message)
    catch { case NonFatal(error) => Future.failed(error) }

  private def answerOf(from: String, message: ToDriver): Future[FromDriver] = message match {
    case ToDriver.Open => Future.successful(parts.answers.open)
    case seal: ToDriver.Seal => Future.successful(parts.answers.sealing(from, seal))
    case withdraw: ToDriver.Withdraw => Future.successful(parts.answers.withdraw(withdraw))
    case uploaded: ToDriver.Uploaded => Future.successful(parts.answers.uploaded(from, uploaded))
    case bypass: ToDriver.PastTheLog => Future.successful(parts.answers.bypass(bypass))
    case ToDriver.Release(lowest) =>
      change(view => lowest.foldLeft(view) { case (all, (store, version)) => all.releasedBelow(store, version) })
      parts.retention.request()
      Future.successful(FromDriver.Noted)
    case list: ToDriver.ListStore =>
      parts.answers.asked(list)
      snapshotsKnown().map(_ => parts.answers.versions(list))
  }

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
    val done = Promise[Unit]()
    val began = state.modify { of =>
      if (of.phase == RunPhase.Running) (of.copy(phase = RunPhase.Committing, committing = done.future), true)
      else (of, false)
    }
    if (!began) Future.failed(ProtocolErrors.runEnded(run))
    else {
      val written = for {
        _ <- close(batch, content, reported)
        segments <- parts.barrier.await(batch, options.commitTimeoutMs)
        waitMillis = millisSince(startedNanos)
        previous <- entryBefore(batch)
        _ <- snapshotsKnown()
        link = EntryLink(runtime.random.nextUuid(), previous)
        list = SnapshotIndex.listFor(view, batch, segments, limits.listEvery)
        entry = CommitEntry.encode(content, batch, link, writer, location.configuredBase, segments, Some(list))
        _ = refuseIfEnded()
        _ <- parts.entryWriter.write(batch, entry, previous, left)
      } yield (entry, waitMillis)
      val committed = written.transform {
        case Success((entry, waitMillis)) =>
          committedNow(batch, entry, waitMillis, millisSince(startedNanos) - waitMillis)
          Success(())
        case Failure(error) =>
          failed(error)
          Failure(error)
      }
      committed.onComplete(_ => done.success(()))
      committed
    }
  }

  /**
   * Spark, or a user, requests the deletion of `commits/<batch>`. Completes when the entry is gone, or when the request is
   * noted: an entry that is still needed is deleted later. The newest entry is deleted at once, which is a rollback, and the run
   * ends. Fails unless [[isAtWork]].
   */
  def deleteEntry(batch: Long): Future[Unit] = {
    val now = state.get
    if (!now.isAtWork) Future.failed(ProtocolErrors.runEnded(run))
    else if (batch < now.view.newest) {
      change(_.requestedToDelete(batch))
      parts.retention.request()
      Future.unit
    } else parts.deleter.rollBack(batch, now.view.requested).flatMap { gone =>
      if (gone.isEmpty) Future.unit
      else {
        logger.warn(
          s"The entry of batch $batch of ${location.root} was deleted while its query is running: run $run ends"
        )
        change(_.deleted(gone))
        close()
      }
    }
  }

  /**
   * Ends the run: it commits nothing any more, and deletes what is not needed a last time. Completes when what is under way has
   * ended.
   */
  def close(): Future[Unit] = {
    val before = state.modify(of => (if (of.isAtWork) of.copy(phase = RunPhase.Closing) else of, of))
    ended.trySuccess(ProtocolErrors.runEnded(run))
    parts.restart.end()
    for {
      _ <- before.committing
      _ <- parts.retention.underWay
      _ = parts.retention.request()
      _ <- parts.retention.underWay
      _ = state.update(of => if (of.phase == RunPhase.Closing) of.copy(phase = RunPhase.Ended) else of)
      _ = ledger.end()
      _ <- endClaim()
    } yield ()
  }

  /** Nothing of this run can take effect any more, unless the outcome of its last commit is unknown. */
  private def endClaim(): Future[Unit] = {
    val isFirst = state.modify { of =>
      val isFirst = of.phase == RunPhase.Ended && !of.claimEnded
      (of.copy(claimEnded = of.claimEnded || isFirst), isFirst)
    }
    if (isFirst && started.exclusive) Claims.end(location, checkpoint, epoch, options.commitTimeoutMs) else Future.unit
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
   * The id of the entry that the one of `batch` is built on. An entry that appeared after this run had claimed its epoch is
   * another driver's: it has committed beside this run, whose claim fences another batch.
   */
  private def entryBefore(batch: Long): Future[Option[UUID]] = {
    val now = view
    if (now.newest >= batch - 1) Future.successful(if (now.newest == batch - 1) now.newestId else None)
    else entries.read(batch - 1).map {
      case EntryFound.Absent => None
      case EntryFound.Plain => throw ProtocolErrors.fenced(location.entry(batch - 1), None)
      case EntryFound.Logged(entry) =>
        val other = entry.index.writer
        throw ProtocolErrors.fenced(location.entry(batch - 1), Some(other.run -> other.host))
    }
  }

  /** Completes when the view has the snapshots that existed at the start. */
  private def snapshotsKnown(): Future[Unit] = {
    val reading = Promise[Unit]()
    val (underWay, begins) = state.modify { of =>
      of.listing.filterNot(_.value.exists(_.isFailure)) match {
        case Some(known) => (of, (known, false))
        case None => (of.copy(listing = Some(reading.future)), (reading.future, true))
      }
    }
    if (begins) {
      val existing = view.entries.keysIterator.filter(view.isForeign).toVector
      val read = (batch: Long) =>
        started.newest match {
          case EntryFound.Logged(entry) if entry.batch == batch => Future.successful(started.newest)
          case _ => entries.read(batch)
        }
      reading.completeWith(SnapshotLists.of(existing)(read).map(list => change(_.listed(list)): Unit)): Unit
    }
    underWay
  }

  private def refuseIfEnded(): Unit = if (state.get.phase != RunPhase.Committing) throw ProtocolErrors.runEnded(run)

  /** The entry exists. Nothing that fails from here on makes the batch any less committed. */
  private def committedNow(batch: Long, entry: EncodedEntry, waitMillis: Long, writeMillis: Long): Unit =
    try finish(batch, entry, waitMillis, writeMillis)
    catch {
      case NonFatal(error) =>
        logger.warn(s"Batch $batch of ${location.root} is committed; what follows has failed", error)
    }

  private def finish(batch: Long, entry: EncodedEntry, waitMillis: Long, writeMillis: Long): Unit = {
    val unused = ledger.committed(batch)
    val report = state.modify { of =>
      val view = of.view.committed(batch, entry.index, BarrierReports.size(entry)).release(unused)
      val report = BarrierReports.of(batch, entry, waitMillis, writeMillis, view.bytes)
      val phase = if (of.phase == RunPhase.Committing) RunPhase.Running else of.phase
      (of.copy(view = view, barrier = Some(report), phase = phase), report)
    }
    metrics.committed(report)
    parts.restart.end()
    logger.info(
      s"Batch $batch: ${report.segments} segments durable after $waitMillis ms, commit entry of ${report.entryBytes} " +
        s"bytes written in $writeMillis ms"
    )
    parts.retention.request()
    if (started.exclusive) parts.sweep.request()
  }

  private def failed(error: Throwable): Unit = {
    metrics.failed()
    parts.restart.end()
    val unknown = error match {
      case named: DstlException => named.condition == "DSTL_COMMIT_UNKNOWN"
      case _ => false
    }
    // After an unknown commit nothing may be deleted that it may have named; after another driver's, nothing at all.
    state.update(_.copy(phase = if (unknown) RunPhase.Broken else RunPhase.Ended)): Unit
    ledger.end()
  }

  private def view: LogView = state.get.view

  private def change(transition: LogView => LogView): LogView =
    state.update(of => of.copy(view = transition(of.view))).view

  private def millisSince(nanos: Long): Long = TimeUnit.NANOSECONDS.toMillis(runtime.timer.nowNanos - nanos)
}

object RunCoordinator {
  private val logger = LoggerFactory.getLogger(classOf[RunCoordinator])

  /** What a run works with. */
  private final case class Setup(
      location: QueryLocation,
      options: LogOptions,
      writer: Writer,
      checkpoint: StorageClient,
      entries: EntryReader,
      link: ExecutorLink,
      limits: RunLimits,
      runtime: ProtocolRuntime
  )

  /** What a run consists of. */
  private final case class Parts(
      answers: ExecutorAnswers,
      barrier: Barrier,
      entryWriter: EntryWriter,
      restart: RestartWatch,
      deleter: Deleter,
      retention: RetentionRounds,
      sweep: OrphanSweep
  )

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
      runtime: ProtocolRuntime,
      limits: RunLimits = RunLimits()
  ): Future[RunCoordinator] = {
    implicit val executor: ExecutionContext = runtime.executor
    val entries = new EntryReader(location, checkpoint, options.commitTimeoutMs, limits.fetchLength, runtime)
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
      assemble(
        Setup(location, options, writer, checkpoint, entries, safe(executors), limits, runtime),
        log,
        start,
        new AttemptLedger(budget),
        accumulator,
        metrics
      )
    }
  }

  private def assemble(
      setup: Setup,
      log: StorageClient,
      start: StartedRun,
      ledger: AttemptLedger,
      accumulator: Long,
      metrics: CommitMetrics
  ): RunCoordinator = {
    import setup._
    val id = RunId(location.root.toString, writer.run)
    val timeout = options.commitTimeoutMs
    val state = new Guarded(RunState(start.view))
    val ended = Promise[Throwable]()
    val query = location.root.toString
    val restart = new RestartWatch(query, start.view.stores, runtime)
    val claims = new Claims(location, checkpoint, start.epoch, limits.fencingRuns, timeout, runtime)
    val deleter = new Deleter(location, checkpoint, log, entries, timeout, runtime)
    val opened = FromDriver.Opened(accumulator, writer.epoch, options.inlineMaxBatchSize)
    def onFailure(error: Throwable): Unit = {
      metrics.deletionFailed()
      logger.warn(s"Could not delete what $query no longer needs; a later round tries again", error)
    }
    ledger.forget(start.view.newest): Unit
    new RunCoordinator(
      id,
      setup,
      start,
      state,
      ledger,
      Parts(
        new ExecutorAnswers(location, writer, opened, ledger, state, restart, limits.carriedBytes, metrics),
        new Barrier(id, ledger, link, ended.future, runtime),
        new EntryWriter(location, checkpoint, entries, start.exclusive, runtime),
        restart,
        deleter,
        new RetentionRounds(query, state, deleter, entries, claims, limits.retention, onFailure, runtime),
        new OrphanSweep(location, checkpoint, log, entries, claims, state, timeout, runtime)
      ),
      metrics,
      ended
    )
  }

  /** A send that throws counts as failed. */
  private def safe(executors: ExecutorLink): ExecutorLink = (to, of, message) =>
    try executors.tell(to, of, message)
    catch { case NonFatal(error) => Future.failed(error) }
}
