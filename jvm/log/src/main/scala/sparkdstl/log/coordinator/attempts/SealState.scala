// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.attempts

/** The state of a sealed segment. Every transition goes through [[SealState.next]], which refuses illegal ones. */
private[coordinator] sealed abstract class SealState(val name: String)

private[coordinator] object SealState {

  /** Sealed, but not yet durable. */
  case object Sealed extends SealState("sealed")

  /** All of it is inline or in data files. */
  case object Durable extends SealState("durable")

  /** Its executor was lost, or an upload failed. A late report can still make it durable. */
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
