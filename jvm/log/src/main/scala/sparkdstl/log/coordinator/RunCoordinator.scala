package sparkdstl.log.coordinator

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.attempts.AttemptLedger
import sparkdstl.log.coordinator.retention.Cleanup
import sparkdstl.log.coordinator.view.{GuardedState, LogView, RunPhase}
import sparkdstl.log.error.{DstlException, ProtocolErrors}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport._

/**
 * The driver's side of one run of one query: a state machine of its phases. It takes seals from tasks, commits batches, and
 * deletes what no version needs. [[RunFactory]] begins it.
 *
 * When [[commit]] succeeds, the state that the batch leads to can be rebuilt from storage alone. When it fails with anything
 * but DSTL_COMMIT_UNKNOWN, this run has not committed the batch, and never will.
 */
final class RunCoordinator private[coordinator] (
    val id: RunId,
    state: GuardedState,
    ledger: AttemptLedger,
    answers: ExecutorAnswers,
    batches: BatchCommit,
    cleanup: Cleanup,
    runtime: ProtocolRuntime
) {
  private val logger = LoggerFactory.getLogger(classOf[RunCoordinator])
  private implicit val executor: ExecutionContext = runtime.executor

  def run: UUID = id.run

  def epoch: Long = view.epoch

  /** Whether storage has refused, at the start, to create an object a second time. */
  def createsExclusively: Boolean = state.get.exclusive

  /** The number of commit entries that this run knows. */
  def retainedEntries: Int = view.entries.size

  /** Bytes of these, with the changes that they name in data files. */
  def retainedBytes: Long = view.bytes

  /** Stores that no task has used since the query was started again; 0 once a batch was committed. */
  def awaitedStores: Int = state.get.restart.fold(0)(_.awaited.size)

  /** Directories of the stores that the newest entry with a log has changed. */
  def stores: Set[String] = view.stores.toSet

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

  /** Whether it commits batches: no commit has failed, and it was not ended. Otherwise its view may be outdated. */
  def isAtWork: Boolean = state.get.isAtWork

  /** Answers an executor. Does not throw. */
  def answer(from: String, message: ToDriver): Future[FromDriver] =
    try answers.to(from, message)
    catch { case NonFatal(error) => Future.failed(error) }

  /** An executor was lost, and with it what it had not uploaded. */
  def executorLost(lost: String, reason: String): Unit = ledger.executorLost(lost, reason)

  /**
   * Commits a batch: everything its tasks sealed becomes durable, then the commit entry is created.
   *
   * @param content the commit entry as Spark wrote it
   * @param reported task attempts whose results Spark has taken for this batch, in the order in which it did
   */
  def commit(batch: Long, content: Array[Byte], reported: Seq[Long]): Future[Unit] = {
    val done = Promise[Unit]()
    val began = state.modify { of =>
      if (of.phase == RunPhase.Running) (of.copy(phase = RunPhase.Committing, committing = done.future), true)
      else (of, false)
    }
    if (!began) Future.failed(ProtocolErrors.runEnded(run))
    else {
      val committed = batches.write(batch, content, reported).andThen {
        case Success(written) => committedNow(batch, written)
        case Failure(error) => failed(error)
      }
      committed.onComplete(_ => done.success(()))
      committed.map(_ => ())
    }
  }

  /**
   * Spark, or a user, requests the deletion of `commits/<batch>`. Completes when the entry is gone, or when the request is
   * noted: an entry that is still needed is deleted later. The newest entry is deleted at once, after the commit that is under way,
   * which is a rollback, and the run ends. Fails unless [[isAtWork]].
   */
  def deleteEntry(batch: Long): Future[Unit] = {
    val before = state.modify { of =>
      val next =
        if (batch < of.view.newest) of.copy(view = of.view.requestedToDelete(batch))
        else if (of.phase == RunPhase.Running) of.copy(phase = RunPhase.RollingBack)
        else of
      (if (of.isAtWork) next else of, of)
    }
    if (!before.isAtWork) Future.failed(ProtocolErrors.runEnded(run))
    else if (batch < before.view.newest) {
      cleanup.request()
      Future.unit
    } else before.phase match {
      case RunPhase.Running => rollBack(batch)
      case RunPhase.Committing => before.committing.flatMap(_ => deleteEntry(batch))
      case _ => Future.failed(ProtocolErrors.runEnded(run))
    }
  }

  private def rollBack(batch: Long): Future[Unit] = cleanup.rollBack(batch).transformWith {
    case Success(gone) if gone.isEmpty =>
      state.update(of => if (of.phase == RunPhase.RollingBack) of.copy(phase = RunPhase.Running) else of)
      Future.unit
    case Success(_) =>
      logger.warn(s"The entry of batch $batch of ${id.root} was deleted while its query is running: run $run ends")
      close()
    // The deletion may have taken effect.
    case Failure(error) => close().transform(_ => Failure(error))
  }

  /** Ends the run: it commits no more, and deletes what is not needed a last time. Completes when its requests have ended. */
  def close(): Future[Unit] = {
    val before = state.modify { of =>
      (if (of.isAtWork) of.copy(phase = RunPhase.Closing, restart = None) else of, of)
    }
    batches.interrupt(ProtocolErrors.runEnded(run))
    for {
      _ <- before.committing
      _ <- cleanup.lastRound()
      _ = state.update(of => if (of.phase == RunPhase.Closing) of.copy(phase = RunPhase.Ended) else of)
      _ = ledger.end()
      _ <- cleanup.endClaim()
    } yield ()
  }

  /** The entry exists: whatever fails from here on, the batch is committed. */
  private def committedNow(batch: Long, written: WrittenEntry): Unit =
    try {
      batches.committed(batch, written)
      cleanup.committed()
    } catch {
      case NonFatal(error) => logger.warn(s"Batch $batch of ${id.root} is committed; what follows has failed", error)
    }

  private def failed(error: Throwable): Unit = {
    val unknown = DstlException.conditionOf(error).contains("DSTL_COMMIT_UNKNOWN")
    // After an unknown commit nothing may be deleted that it may have named; after another driver's, nothing at all.
    state.update(_.copy(phase = if (unknown) RunPhase.Broken else RunPhase.Ended, restart = None)): Unit
    ledger.end()
  }

  private[coordinator] def view: LogView = state.get.view
}
