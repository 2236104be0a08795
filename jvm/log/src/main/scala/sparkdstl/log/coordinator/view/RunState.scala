package sparkdstl.log.coordinator.view

import scala.concurrent.Future

import sparkdstl.log.transport.BarrierReport

/**
 * All that a run knows and that changes, but for what tasks have sealed: one immutable value, which is replaced as a whole.
 *
 * @param exclusive whether storage creates exclusively, as the trial at the start has shown
 * @param barrier how the newest barrier went
 * @param committing completes when the newest commit has ended
 * @param listing
 *   completes when the view has the snapshots that existed at the start; None before the first request for them
 * @param restart None once a batch was committed, or the run has ended
 * @param claims the claims that were read, by epoch; None for one that was deleted or that another release has written
 * @param claimEnded whether the claim of the run was marked as ended
 * @param bypassed whether changes of the query bypass the log
 */
private[coordinator] final case class RunState(
    view: LogView,
    exclusive: Boolean,
    phase: RunPhase = RunPhase.Running,
    barrier: Option[BarrierReport] = None,
    committing: Future[Unit] = Future.unit,
    listing: Option[Future[Unit]] = None,
    restart: Option[Restart] = None,
    claims: Map[Long, Option[Claim]] = Map.empty,
    claimEnded: Boolean = false,
    bypassed: Boolean = false,
    round: RoundState = RoundState.Idle(0L),
    sweep: SweepState = SweepState.Due(0, 0L)
) {

  /** Whether the run commits batches: no commit has failed, and it was not ended. Otherwise what it knows may be outdated. */
  def isAtWork: Boolean = phase match {
    case RunPhase.Running | RunPhase.Committing | RunPhase.RollingBack => true
    case RunPhase.Closing | RunPhase.Ended | RunPhase.Broken => false
  }

  /** Whether the view of the log is still true: only then retention may plan with it. */
  def mayDelete: Boolean = isAtWork || phase == RunPhase.Closing
}

/** The state of a run under the one lock that guards what stands in the log. Transitions must not block. */
private[coordinator] final class GuardedState(initial: RunState) {
  // Guarded by this.
  private var current = initial

  def get: RunState = synchronized(current)

  def update(transition: RunState => RunState): RunState = synchronized {
    current = transition(current)
    current
  }

  /** Replaces the state, and returns the transition's answer. */
  def modify[A](transition: RunState => (RunState, A)): A = synchronized {
    val (next, answer) = transition(current)
    current = next
    answer
  }

  /** Replaces the view of the log. */
  def change(transition: LogView => LogView): LogView = update(of => of.copy(view = transition(of.view))).view
}

private[coordinator] sealed trait RunPhase

private[coordinator] object RunPhase {
  case object Running extends RunPhase
  case object Committing extends RunPhase

  /** The newest entry is being deleted: no batch is committed meanwhile. */
  case object RollingBack extends RunPhase

  /** The run is being ended: it commits no more, and deletes what is not needed a last time. */
  case object Closing extends RunPhase

  /** A commit has failed, or the run was ended. */
  case object Ended extends RunPhase

  /** The outcome of a commit is unknown. */
  case object Broken extends RunPhase
}

/**
 * A query that was started again, before its first batch is committed.
 *
 * @param stores how many the newest commit entry has changed
 * @param awaited those of them that no task has come to
 * @param sinceNanos when the first task came, by the runtime's timer
 */
private[coordinator] final case class Restart(stores: Int, awaited: Set[String], sinceNanos: Option[Long] = None)

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

  /** The entry of this batch is damaged, so it is unknown which data files it names: nothing is deleted before it is. */
  final case class BlockedBy(batch: Long) extends SweepState
  case object Done extends SweepState
}
