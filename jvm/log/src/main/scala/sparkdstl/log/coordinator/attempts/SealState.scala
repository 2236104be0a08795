package sparkdstl.log.coordinator.attempts

/**
 * What has become of one segment that one task attempt sealed. Every change goes through [[SealState.next]], which
 * refuses what must not happen.
 */
private[coordinator] sealed abstract class SealState(val name: String)

private[coordinator] object SealState {

  /** Promised, and not everything of it is durable yet. */
  case object Sealed extends SealState("sealed")

  /** All of it is in the driver's hands or in data files. */
  case object Durable extends SealState("durable")

  /** Its executor is gone, or could not upload it. Word of an upload may still come: it was late, not lost. */
  case object Lost extends SealState("lost")

  /** The task said that it does not count. */
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
