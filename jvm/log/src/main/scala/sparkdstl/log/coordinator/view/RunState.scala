// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import scala.concurrent.Future

import sparkdstl.log.transport.BarrierReport

/**
 * The mutable state of a run, except for the seals of tasks: one immutable value, which is replaced as a whole.
 *
 * @param exclusive whether storage creates exclusively, according to the trial at the start
 * @param barrier the report of the newest barrier
 * @param changing completes at the end of the newest commit or rollback
 * @param listing completes when the view has the snapshots that existed at the start; None before they are first needed
 * @param restart None after the first commit and after the end of the run
 * @param sealsAll whether this run has committed a batch, and the newest one had seals from all stores
 * @param claims the claims that were read, by epoch; None for a claim that was deleted or has the format of another release
 * @param pins the pins of the last listing
 * @param claimEnd completes when the claim of the ended run is marked, or stays without a mark
 * @param bypassed whether changes of the query bypass the log
 * @param failedRounds rounds of retention that have failed in a row
 */
private[coordinator] final case class RunState(
    view: LogView,
    exclusive: Boolean,
    phase: RunPhase = RunPhase.Running,
    barrier: Option[BarrierReport] = None,
    changing: Future[Unit] = Future.unit,
    listing: Option[Future[Unit]] = None,
    restart: Option[Restart] = None,
    claims: Map[Long, Option[Claim]] = Map.empty,
    pins: Pins = Pins(),
    claimEnd: Option[Future[Unit]] = None,
    sealsAll: Boolean = false,
    bypassed: Boolean = false,
    round: RoundState = RoundState.Idle(0L),
    failedRounds: Int = 0,
    sweep: SweepState = SweepState.Due(0, 0L)
) {

  /** Whether the run commits batches: no commit has failed, and the run was not ended. Otherwise the view may be outdated. */
  def isAtWork: Boolean = phase match {
    case RunPhase.Running | RunPhase.Committing | RunPhase.RollingBack => true
    case RunPhase.Closing | RunPhase.Ended | RunPhase.Broken => false
  }

  /** Whether the view is current, so that retention can plan with it. */
  def mayDelete: Boolean = isAtWork || phase == RunPhase.Closing
}

/** The state of a run and its lock. Transitions must not block. */
private[coordinator] final class GuardedState(initial: RunState) {
  // Guarded by this.
  private var current = initial

  def get: RunState = synchronized(current)

  def update(transition: RunState => RunState): RunState = synchronized {
    current = transition(current)
    current
  }

  /** Replaces the state, and returns the transition's result. */
  def modify[A](transition: RunState => (RunState, A)): A = synchronized {
    val (next, answer) = transition(current)
    current = next
    answer
  }

  def change(transition: LogView => LogView): LogView = update(of => of.copy(view = transition(of.view))).view
}

private[coordinator] sealed trait RunPhase

private[coordinator] object RunPhase {
  case object Running extends RunPhase
  case object Committing extends RunPhase

  /** The newest entry is being deleted; commits are refused. */
  case object RollingBack extends RunPhase

  /** The run is ending: commits are refused, and the last round of retention runs. */
  case object Closing extends RunPhase

  /** A commit has failed, or the run was ended. */
  case object Ended extends RunPhase

  /** The outcome of a commit is unknown. */
  case object Broken extends RunPhase
}

/**
 * The state of a restarted query before its first commit: the number of stores that the newest commit entry has changed, those
 * that no task has opened yet, and the time of the runtime's timer when the first task opened a store.
 */
private[coordinator] final case class Restart(stores: Int, awaited: Set[String], sinceNanos: Option[Long] = None)

/** The state of the rounds of retention. */
private[coordinator] sealed trait RoundState

private[coordinator] object RoundState {

  /** The next round begins when there is work, but not before this time of the runtime's timer. */
  final case class Idle(notBeforeNanos: Long) extends RoundState

  /** A timer begins the next round. */
  case object Planned extends RoundState

  final case class UnderWay(ended: Future[Unit]) extends RoundState
}

/** The state of the sweep of files that earlier runs have left. */
private[coordinator] sealed trait SweepState

private[coordinator] object SweepState {

  /** The sweep is to begin, but not before this time of the runtime's timer. */
  final case class Due(failures: Int, notBeforeNanos: Long) extends SweepState

  final case class UnderWay(ended: Future[Unit]) extends SweepState

  /** The entry of this batch is damaged, so its data files are unknown: the sweep waits until the entry is deleted. */
  final case class BlockedBy(batch: Long) extends SweepState

  case object Done extends SweepState
}
