// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future, Promise}

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.coordinator.view.{Claim, GuardedState, RunPhase}
import sparkdstl.log.request.QueryStorage

/**
 * Deletes unneeded objects of the log: on request, after each commit, and at the end of the run.
 *
 * @param claim of the run
 */
private[coordinator] final class Cleanup(
    storage: QueryStorage,
    state: GuardedState,
    deleter: Deleter,
    rounds: RetentionRounds,
    sweep: OrphanSweep,
    claim: Claim
) {

  /** How long the end of the run waits until its writes are over. */
  private final val QuietMillis = 30000L

  private val logger = LoggerFactory.getLogger(classOf[Cleanup])
  private implicit val executor: ExecutionContext = storage.runtime.executor

  def request(): Unit = rounds.request()

  def committed(): Unit = {
    rounds.request()
    if (state.get.exclusive) sweep.request()
  }

  /** Deletes the entry of `batch` if it is the newest. Returns the deleted entries. */
  def rollBack(batch: Long): Future[Vector[Long]] =
    deleter.rollBack(batch, state.get.view.requested).map { gone =>
      state.change(_.deleted(gone)): Unit
      gone
    }

  def lastRounds(): Future[Unit] =
    for {
      _ <- rounds.whenIdle
      _ = rounds.request()
      _ <- rounds.whenIdle
    } yield ()

  /**
   * Marks the claim of the run as ended: no write of the run takes effect any more. Without the mark if the outcome of the last
   * commit is unknown, or if a write may still take effect after half a minute: a hedge that was cancelled, for example.
   */
  def endClaim(): Future[Unit] = {
    val done = Promise[Unit]()
    val (end, isFirst) = state.modify { of =>
      val marks = of.phase == RunPhase.Ended && of.exclusive && of.claimEnd.isEmpty
      val end = of.claimEnd.getOrElse(if (marks) done.future else Future.unit)
      (of.copy(claimEnd = of.claimEnd.orElse(Option.when(marks)(end))), (end, marks))
    }
    if (isFirst) done.completeWith(markEnd()): Unit
    end
  }

  private def markEnd(): Future[Unit] = {
    val epoch = state.get.view.epoch
    val quiet = sweep.whenIdle.flatMap(_ => storage.whenSettled).map(_ => true)
    storage.runtime.within(QuietMillis, quiet)(false).flatMap {
      case true => Claims.end(storage, epoch, claim)
      case false =>
        logger.warn(
          s"The claim ${storage.location.epoch(epoch)} of the ended run is not marked as ended, because writes are under way after " +
            s"${QuietMillis / 1000} s: dstl commands that change the checkpoint need --stopped for a while"
        )
        Future.unit
    }
  }
}
