package sparkdstl.log.coordinator.view

import scala.concurrent.Future

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

/** Whether a round of retention is under way. */
private[coordinator] sealed trait RoundState

private[coordinator] object RoundState {

  /** The next begins when there is something to do, but not before this time of the runtime's timer. */
  final case class Idle(notBeforeNanos: Long) extends RoundState

  /** A timer begins the next. */
  case object Planned extends RoundState
  final case class UnderWay(ended: Future[Unit]) extends RoundState
}

/** How far a run has come with deleting what earlier runs have left. */
private[coordinator] sealed trait SweepState

private[coordinator] object SweepState {

  /** To be done, but not before this time of the runtime's timer, after so many failures. */
  final case class Due(failures: Int, notBeforeNanos: Long) extends SweepState
  case object UnderWay extends SweepState

  /** The entry of this batch is damaged, so it is not known which data files it names: nothing is deleted before it is gone. */
  final case class BlockedBy(batch: Long) extends SweepState
  case object Done extends SweepState
}
