// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import sparkdstl.log.storage.StorageErrors

/** The state of an attempt. Every transition goes through [[next]], which refuses illegal ones. */
private[request] sealed abstract class AttemptState(val name: String) {
  import AttemptState._

  /** Whether the attempt may have taken effect or may still take effect. */
  def mayHaveEffect: Boolean = this != Refused

  def isUnderWay: Boolean = this == Running || this == Aborted

  /** @throws IllegalStateException if an attempt in this state cannot become `to` */
  def next(to: AttemptState): AttemptState =
    if (allowed(this -> to)) to
    else throw new IllegalStateException(s"an attempt that is $name cannot become ${to.name}")
}

private[request] object AttemptState {

  case object Running extends AttemptState("running")

  /** Another attempt has replaced it, or the request has an outcome. It may still take effect and may still be answered. */
  case object Aborted extends AttemptState("aborted")

  case object Succeeded extends AttemptState("succeeded")

  /** Storage has answered that the attempt has no effect. */
  case object Refused extends AttemptState("refused")

  /** The attempt has ended in an error that does not exclude an effect. */
  case object Unanswered extends AttemptState("unanswered")

  val all: Seq[AttemptState] = Seq(Running, Aborted, Succeeded, Refused, Unanswered)

  private val allowed: Set[(AttemptState, AttemptState)] =
    (for (from <- Seq(Running, Aborted); to <- Seq(Succeeded, Refused, Unanswered)) yield from -> to).toSet +
      (Running -> Aborted)

  def of(error: Throwable): AttemptState = if (StorageErrors.isDefinite(error)) Refused else Unanswered
}

/** The phase of a request. Every transition goes through [[next]], which refuses illegal ones. */
private[request] sealed abstract class RequestPhase(val name: String) {

  /** @throws IllegalStateException if a request in this phase cannot become `to` */
  def next(to: RequestPhase): RequestPhase =
    if (this != RequestPhase.Decided && to != RequestPhase.Trying) to
    else throw new IllegalStateException(s"a request that is $name cannot become ${to.name}")
}

private[request] object RequestPhase {

  case object Trying extends RequestPhase("trying")

  /** After an error that is not retryable no attempt begins; attempts under way may still change the outcome. */
  case object Refused extends RequestPhase("refused")

  case object Decided extends RequestPhase("decided")
}

/** Why an attempt begins. */
private[request] sealed trait AttemptReason

private[request] object AttemptReason {
  case object First extends AttemptReason

  /** A hedge: the newest attempt is slow, but has not failed. */
  case object Slow extends AttemptReason

  case object Retry extends AttemptReason
}

/** @param abortedNanos when it was aborted; None if it was not */
private[request] final case class RequestAttempt(
    reason: AttemptReason,
    begunNanos: Long,
    state: AttemptState = AttemptState.Running,
    abortedNanos: Option[Long] = None
) {
  def next(to: AttemptState): RequestAttempt = copy(state = state.next(to))
  def aborted(nowNanos: Long): RequestAttempt = next(AttemptState.Aborted).copy(abortedNanos = Some(nowNanos))

  /** How long it took, or ran until it was aborted; None for an error, which is no measure of latency. */
  def latencyNanos(nowNanos: Long): Option[Long] =
    if (state == AttemptState.Succeeded) Some(nowNanos - begunNanos)
    else abortedNanos.map(_ - begunNanos).filter(_ > 0)
}
