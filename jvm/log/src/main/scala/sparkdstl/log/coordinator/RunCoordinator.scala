// SPDX-License-Identifier: Apache-2.0
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
 * The driver's side of one run of one query: a state machine of its phases. It accepts seals from tasks, commits batches, and
 * deletes unneeded objects. [[RunFactory]] begins it.
 *
 * If [[commit]] succeeds, the state after the batch can be rebuilt from storage alone. If it fails with any condition but
 * DSTL_COMMIT_UNKNOWN, this run has not committed the batch and never will.
 */
final class RunCoordinator private[coordinator] (
    val id: RunId,
    state: GuardedState,
    ledger: AttemptLedger,
    answers: ExecutorAnswers,
    batches: BatchCommit,
    val plans: BatchPlans,
    cleanup: Cleanup,
    runtime: ProtocolRuntime
) {
  private val logger = LoggerFactory.getLogger(classOf[RunCoordinator])
  private implicit val executor: ExecutionContext = runtime.executor

  def run: UUID = id.run
  def epoch: Long = view.epoch

  /** Whether storage creates exclusively, according to the trial at the start. */
  def createsExclusively: Boolean = state.get.exclusive

  def retainedEntries: Int = view.entries.size
  def retainedBytes: Long = view.bytes
  def entriesKeptByPins: Int = view.keptByPins

  /** The number of stores that no task has opened since the restart of the query; 0 after the first commit. */
  def awaitedStores: Int = state.get.restart.fold(0)(_.awaited.size)

  def stores: Set[String] = view.stores.toSet

  /** The last committed batch in the view; -1 if there is none. */
  def lastCommitted: Long = view.newest

  def barrier: Option[BarrierReport] = state.get.barrier

  /** Whether the view shows that `commits/<batch>` does not exist. Another driver may have created it. */
  def knowsAbsent(batch: Long): Boolean = {
    val now = state.get
    now.phase == RunPhase.Running && batch > now.view.newest
  }

  /**
   * Whether the files that plan the next batch may be written while its tasks run: its tasks will seal, because those of the
   * last batch have sealed in all partitions, in this run.
   */
  def mayPlanAhead: Boolean = state.get.sealsAll

  def hasSeals(batch: Long): Boolean = ledger.hasSeals(batch)

  /** The directories of the stores whose changes in the batch tasks have reported. */
  def sealedStores(batch: Long): Set[String] = ledger.sealedStores(batch)

  def isAtWork: Boolean = state.get.isAtWork

  /** Answers a message of an executor. Does not throw. */
  def answer(from: String, message: ToDriver): Future[FromDriver] =
    try answers.to(from, message)
    catch { case NonFatal(error) => Future.failed(error) }

  /** Marks the segments that a lost executor has not uploaded as lost. */
  def executorLost(lost: String, reason: String): Unit = ledger.executorLost(lost, reason)

  /**
   * Commits a batch: waits until its changes are durable, then creates the commit entry with Spark's `content`. `reported` are
   * the task attempts of the batch whose results Spark has accepted, in order.
   */
  def commit(batch: Long, content: Array[Byte], reported: Seq[Long]): Future[Unit] = {
    val done = Promise[Unit]()
    val began = state.modify { of =>
      if (of.phase == RunPhase.Running) (of.copy(phase = RunPhase.Committing, changing = done.future), true)
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
   * Requests the deletion of `commits/<batch>`. Completes when the entry is deleted or the request is recorded: retention
   * deletes it when no store needs it. Deleting the newest entry is a rollback: it takes effect at once, after a commit that is
   * under way, and ends the run. Fails unless [[isAtWork]].
   */
  def deleteEntry(batch: Long): Future[Unit] = {
    val done = Promise[Unit]()
    val before = state.modify { of =>
      val next =
        if (batch < of.view.newest) of.copy(view = of.view.requestedToDelete(batch))
        else if (of.phase == RunPhase.Running) of.copy(phase = RunPhase.RollingBack, changing = done.future)
        else of
      (if (of.isAtWork) next else of, of)
    }
    if (!before.isAtWork) Future.failed(ProtocolErrors.runEnded(run))
    else if (batch < before.view.newest) {
      cleanup.request()
      Future.unit
    } else before.phase match {
      case RunPhase.Running => rollBack(batch, done)
      case RunPhase.Committing => before.changing.flatMap(_ => deleteEntry(batch))
      case _ => Future.failed(ProtocolErrors.runEnded(run))
    }
  }

  private def rollBack(batch: Long, done: Promise[Unit]): Future[Unit] =
    cleanup.rollBack(batch).transformWith { outcome =>
      state.update { of =>
        outcome match {
          case Success(gone) if gone.isEmpty && of.phase == RunPhase.RollingBack => of.copy(phase = RunPhase.Running)
          case Success(_) => of
          // The deletion may have taken effect, so the view may be outdated.
          case Failure(_) => of.copy(phase = RunPhase.Ended, restart = None)
        }
      }: Unit
      done.success(())
      outcome match {
        case Success(gone) if gone.isEmpty => Future.unit
        case Success(_) =>
          logger.warn(s"The entry of batch $batch of ${id.root} was deleted while its query is running: run $run ends")
          close()
        case Failure(error) => close().transform(_ => Failure(error))
      }
    }

  /**
   * Ends the run: refuses commits, runs a last round of retention, and marks the end when the run's writes are over, for which it
   * waits a limited time.
   */
  def close(): Future[Unit] = {
    val before = state.modify { of =>
      (if (of.isAtWork) of.copy(phase = RunPhase.Closing, restart = None) else of, of)
    }
    batches.interrupt(ProtocolErrors.runEnded(run))
    for {
      _ <- before.changing
      _ <- cleanup.lastRounds()
      _ = state.update(of => if (of.phase == RunPhase.Closing) of.copy(phase = RunPhase.Ended) else of)
      _ = ledger.end()
      _ <- plans.whenWritten.recover { case _ => () }
      _ <- cleanup.endClaim()
    } yield ()
  }

  /** Updates the view after the entry was created. A failure here does not undo the commit. */
  private def committedNow(batch: Long, written: WrittenEntry): Unit =
    try {
      batches.committed(batch, written)
      cleanup.committed()
    } catch {
      case NonFatal(error) =>
        logger.warn(s"Batch $batch of ${id.root} is committed, but the work after the commit has failed", error)
    }

  private def failed(error: Throwable): Unit = {
    val unknown = DstlException.conditionOf(error).contains("DSTL_COMMIT_UNKNOWN")
    // The run deletes nothing any more: an entry of unknown outcome may name the files, or another driver's may.
    state.update(_.copy(phase = if (unknown) RunPhase.Broken else RunPhase.Ended, restart = None)): Unit
    ledger.end()
  }

  private[coordinator] def view: LogView = state.get.view
}
