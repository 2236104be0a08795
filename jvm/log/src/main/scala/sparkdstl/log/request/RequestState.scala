// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import sparkdstl.log.error.Causes
import sparkdstl.log.storage.StorageErrors

/**
 * A request and its attempts, as one immutable value. It decides when an attempt begins, which attempt is aborted for it, and
 * the outcome. Attempt n is at index n - 1. A hedge or replacement may begin at `timeoutNanos`, a retry at `retryNanos`, by the
 * runtime's timer.
 */
private[request] final case class RequestState(
    kind: RequestKind,
    options: RequestOptions,
    attempts: Vector[RequestAttempt] = Vector.empty,
    phase: RequestPhase = RequestPhase.Trying,
    errors: AttemptErrors = AttemptErrors(),
    timeoutNanos: Option[Long] = None,
    retryNanos: Option[Long] = None
) {
  import AttemptState._

  def isDecided: Boolean = phase == RequestPhase.Decided
  def isRunning(number: Int): Boolean = attempts(number - 1).state == Running

  /** The attempt that is aborted if another begins now. */
  def oldestToAbort: Option[Int] = if (running.size < options.maxAttempts) None else running.headOption

  /** The next time at which [[due]] must be evaluated. */
  def wakeNanos: Option[Long] = (timeoutNanos ++ retryNanos).minOption

  /** The reason for an attempt that begins now, or the state that waits. `hedge` takes a hedge from the budget. */
  def due(nowNanos: Long, hedge: () => Boolean): Either[RequestState, AttemptReason] =
    if (retryNanos.exists(_ <= nowNanos)) Right(AttemptReason.Retry)
    else if (!timeoutNanos.exists(_ <= nowNanos)) Left(this)
    else {
      val isFull = oldestToAbort.isDefined
      val allowedMillis = if (isFull) options.replacementMillis(kind, replaced + 1) else options.timeoutMillis
      val untilNanos = attempts.last.begunNanos + allowedMillis * 1000000
      if (untilNanos <= nowNanos || (!isFull && hedge())) Right(AttemptReason.Slow)
      else Left(copy(timeoutNanos = Some(untilNanos)))
    }

  /** Begins an attempt. If the maximum is running, the oldest is aborted. Without `hedgeMillis` no hedge follows. */
  def begin(reason: AttemptReason, nowNanos: Long, hedgeMillis: Option[Long]): RequestState = {
    if (phase != RequestPhase.Trying || !mayRepeat)
      throw new IllegalStateException(s"no attempt may begin after ${attempts.map(_.state.name)} when ${phase.name}")
    copy(
      attempts = oldestToAbort.fold(attempts)(changed(_)(_.aborted(nowNanos))) :+ RequestAttempt(reason, nowNanos),
      timeoutNanos = hedgeMillis.filter(_ => kind.concurrent).map(nowNanos + _ * 1000000),
      retryNanos = None
    )
  }

  def succeeded(number: Int): RequestState = copy(attempts = changed(number)(_.next(Succeeded)))

  /**
   * Records the failure of attempt `number`, and schedules a retry before the deadline unless one is pending, the attempt was
   * aborted, or the error is not retryable. `chance` is uniform in 0 to 1; `isStarting` is as in [[Requests]].
   */
  def failed(
      number: Int,
      error: Throwable,
      nowNanos: Long,
      deadlineNanos: Long,
      chance: Double,
      isStarting: Boolean = false
  ): RequestState = {
    val wasRunning = isRunning(number)
    val ended = copy(attempts = changed(number)(_.next(AttemptState.of(error))))
    if (isDecided) ended
    else {
      val noted = ended.copy(errors = errors + error)
      val givesUp = isStarting && StorageErrors.needsOperator(error) &&
        nowNanos - attempts.head.begunNanos >= RequestOptions.StartMillis * 1000000
      if (phase == RequestPhase.Refused || givesUp || !StorageErrors.isRetryable(error))
        noted.copy(phase = phase.next(RequestPhase.Refused), timeoutNanos = None, retryNanos = None)
      else {
        val failures = noted.attempts.count(attempt => !attempt.state.isUnderWay && attempt.abortedNanos.isEmpty)
        val nextNanos = nowNanos + options.retryDelayMillis(failures, chance) * 1000000
        val retries = wasRunning && retryNanos.isEmpty && options.retries && nextNanos < deadlineNanos &&
          noted.mayRepeat
        noted.copy(
          retryNanos = if (retries) Some(nextNanos) else retryNanos,
          timeoutNanos = if (number == attempts.size) None else timeoutNanos
        )
      }
    }
  }

  /** Ends the request with an outcome and aborts running attempts. */
  def decided(nowNanos: Long): RequestState = copy(
    attempts = attempts.map(attempt => if (attempt.state == Running) attempt.aborted(nowNanos) else attempt),
    phase = phase.next(RequestPhase.Decided),
    timeoutNanos = None,
    retryNanos = None
  )

  /** The outcome if no attempt follows and no attempt under way can change it. */
  def conclusion(name: String): Option[Outcome[Nothing]] = {
    val nothingFollows = retryNanos.isEmpty && !attempts.exists(_.state.isUnderWay)
    Option.when(nothingFollows || (phase == RequestPhase.Refused && !kind.isWrite))(without(errors.conclusion(
      name,
      attempts.size
    )))
  }

  /** The outcome of a request that ends now. */
  def interrupted(explain: Option[Throwable] => Throwable): Outcome[Nothing] =
    without(errors.withEarlier(explain(errors.last)))

  def progress: String = {
    val aborted = if (replaced == 0) "" else s", $replaced of them aborted"
    val answers = errors.last.fold("none was answered") { last =>
      val failures = attempts.count(attempt => attempt.state == Refused || attempt.state == Unanswered)
      s"$failures failed, the last: ${Causes.describe(last)}"
    }
    s"${attempts.size} attempt(s)$aborted; $answers"
  }

  private def without(answer: Throwable): Outcome[Nothing] =
    if (kind.isWrite && attempts.exists(_.state.mayHaveEffect)) Outcome.Unknown(answer) else Outcome.Failed(answer)

  /** Whether another attempt is allowed: if attempts may be concurrent, or all earlier ones were refused. */
  private def mayRepeat: Boolean = kind.concurrent || attempts.forall(_.state == Refused)

  private def running: Seq[Int] = attempts.indices.collect { case at if attempts(at).state == Running => at + 1 }
  private def replaced: Int = attempts.count(_.abortedNanos.isDefined)

  private def changed(number: Int)(change: RequestAttempt => RequestAttempt): Vector[RequestAttempt] =
    attempts.updated(number - 1, change(attempts(number - 1)))
}
