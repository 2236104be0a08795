package sparkdstl.log.coordinator.attempts

/**
 * The state of one segment that one task attempt sealed. Every change goes through [[SealState.next]], which refuses
 * illegal ones.
 */
private[coordinator] sealed abstract class SealState(val name: String)

private[coordinator] object SealState {

  /** Sealed, and not all of it is durable yet. */
  case object Sealed extends SealState("sealed")

  /** The driver or data files hold all of it. */
  case object Durable extends SealState("durable")

  /** Its executor was lost, or could not upload it. A late report can still make it durable. */
  case object Lost extends SealState("lost")

  /** The task has withdrawn it. */
  case object Withdrawn extends SealState("withdrawn")

  private val allowed: Set[(SealState, SealState)] = Set(
    Sealed -> Durable,
    Sealed -> Lost,
    Sealed -> Withdrawn,
    Durable -> Withdrawn,
    Lost -> Durable,
    Lost -> Withdrawn
  )

  /** @throws IllegalStateException if a segment in state `from` cannot become `to` */
  def next(from: SealState, to: SealState): SealState =
    if (from == to || allowed(from -> to)) to
    else throw new IllegalStateException(s"a segment that is ${from.name} cannot become ${to.name}")
}
