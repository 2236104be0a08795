package sparkdstl.log.coordinator

import scala.concurrent.Future

import sparkdstl.log.coordinator.retention.{RoundState, SweepState}
import sparkdstl.log.coordinator.view.LogView
import sparkdstl.log.transport.BarrierReport

/**
 * All that a run knows and that changes, but for what tasks have sealed: one immutable value, which is replaced as a whole.
 *
 * @param barrier
 *   how the newest barrier went
 * @param committing
 *   completes when the newest commit has ended
 * @param listing
 *   completes when the view has the snapshots that existed at the start; None before they are asked for
 * @param claimEnded
 *   whether the claim of the run was marked as ended
 */
private[coordinator] final case class RunState(
    view: LogView,
    phase: RunPhase = RunPhase.Running,
    barrier: Option[BarrierReport] = None,
    committing: Future[Unit] = Future.unit,
    listing: Option[Future[Unit]] = None,
    claimEnded: Boolean = false,
    round: RoundState = RoundState.Idle(0L),
    sweep: SweepState = SweepState.Due(0, 0L)
) {

  /** Whether the run commits batches: no commit has failed, and it was not ended. Otherwise what it knows may be outdated. */
  def isAtWork: Boolean = phase == RunPhase.Running || phase == RunPhase.Committing

  /** Whether what the run knows of the log is still true, so that it can tell what is not needed. */
  def mayDelete: Boolean = isAtWork || phase == RunPhase.Closing
}

private[coordinator] sealed trait RunPhase

private[coordinator] object RunPhase {
  case object Running extends RunPhase
  case object Committing extends RunPhase

  /** The run is being ended: it commits nothing any more, and deletes what is not needed a last time. */
  case object Closing extends RunPhase

  /** A commit has failed, or the run was ended. */
  case object Ended extends RunPhase

  /** The outcome of a commit is unknown. */
  case object Broken extends RunPhase
}

/** A value that is replaced under one lock, and the only one that guards what stands in the log. Transitions must not block. */
private[coordinator] final class Guarded[S](initial: S) {
  // Guarded by this.
  private var current = initial

  def get: S = synchronized(current)

  def update(transition: S => S): S = synchronized {
    current = transition(current)
    current
  }

  /** Replaces the value, and returns what the transition says of it. */
  def modify[A](transition: S => (S, A)): A = synchronized {
    val (next, answer) = transition(current)
    current = next
    answer
  }
}
