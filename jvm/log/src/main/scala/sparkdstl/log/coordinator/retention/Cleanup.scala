// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.coordinator.view.{GuardedState, RunPhase}
import sparkdstl.log.request.QueryStorage

/** Deletes unneeded objects of the log: on request, after each commit, and at the end of the run. */
private[coordinator] final class Cleanup(
    storage: QueryStorage,
    state: GuardedState,
    deleter: Deleter,
    rounds: RetentionRounds,
    sweep: OrphanSweep
) {
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

  /** Marks the claim of the run as ended, unless the outcome of its last commit is unknown. */
  def endClaim(): Future[Unit] = {
    val isFirst = state.modify { of =>
      val isFirst = of.phase == RunPhase.Ended && !of.claimEnded
      (of.copy(claimEnded = of.claimEnded || isFirst), isFirst)
    }
    val now = state.get
    if (isFirst && now.exclusive) Claims.end(storage, now.view.epoch) else Future.unit
  }
}
