package sparkdstl.log.request

import sparkdstl.log.error.Causes
import sparkdstl.log.storage.StorageErrors

/**
 * A request and its attempts, as one immutable value: when another attempt begins, when the oldest is aborted for it, and
 * what the outcome is. Times are those of the runtime's timer.
 *
 * @param attempts attempt n is at n - 1
 * @param timeoutNanos when the newest attempt has taken so long that another may begin
 * @param retryNanos when another attempt begins because of an error
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

  /** Whether attempt `number` is waited for. */
  def isRunning(number: Int): Boolean = attempts(number - 1).state == Running

  /** The attempt that is aborted when another begins now. */
  def oldestToAbort: Option[Int] = if (running.size < options.maxAttempts) None else running.headOption

  /** When [[due]] has to be evaluated next. */
  def wakeNanos: Option[Long] = (timeoutNanos ++ retryNanos).minOption

  /**
   * The reason for which an attempt begins now, or else the state that waits.
   *
   * @param hedge whether an attempt may begin early, counted if so
   */
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

  /**
   * Another attempt begins. If as many run as may, the oldest is aborted.
   *
   * @param hedgeMillis how long it may take before another begins; None for as long as it takes
   */
  def begin(reason: AttemptReason, nowNanos: Long, hedgeMillis: Option[Long]): RequestState = {
    if (phase != RequestPhase.Trying || !mayRepeat)
      throw new IllegalStateException(s"no attempt may begin beside ${attempts.map(_.state.name)} when ${phase.name}")
    copy(
      attempts = oldestToAbort.fold(attempts)(changed(_)(_.aborted(nowNanos))) :+ RequestAttempt(reason, nowNanos),
      timeoutNanos = hedgeMillis.filter(_ => kind.concurrent).map(nowNanos + _ * 1000000),
      retryNanos = None
    )
  }

  def succeeded(number: Int): RequestState = copy(attempts = changed(number)(_.next(Succeeded)))

  /**
   * Attempt `number` has failed: another follows, unless another has taken its place already or would not help.
   *
   * @param deadlineNanos of the request
   * @param chance uniform in 0 to 1
   */
  def failed(number: Int, error: Throwable, nowNanos: Long, deadlineNanos: Long, chance: Double): RequestState = {
    val wasRunning = isRunning(number)
    val ended = copy(attempts = changed(number)(_.next(AttemptState.of(error))))
    if (isDecided) ended
    else {
      val noted = ended.copy(errors = errors + error)
      if (phase == RequestPhase.Refused || !StorageErrors.isRetryable(error))
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

  /** The request has an outcome: attempts under way are aborted. */
  def decided(nowNanos: Long): RequestState = copy(
    attempts = attempts.map(attempt => if (attempt.state == Running) attempt.aborted(nowNanos) else attempt),
    phase = phase.next(RequestPhase.Decided),
    timeoutNanos = None,
    retryNanos = None
  )

  /** The outcome if no attempt follows, and none under way could change it. */
  def conclusion(name: String): Option[Outcome[Nothing]] = {
    val nothingFollows = retryNanos.isEmpty && !attempts.exists(_.state.isUnderWay)
    Option.when(nothingFollows || (phase == RequestPhase.Refused && !kind.isWrite))(without(errors.conclusion(
      name,
      attempts.size
    )))
  }

  /** The outcome if the request ends here. */
  def interrupted(explain: Option[Throwable] => Throwable): Outcome[Nothing] =
    without(errors.withEarlier(explain(errors.last)))

  /** What the attempts came to so far, for the log. */
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

  /** Whether an attempt may be made although earlier ones may still take effect, or none of them may. */
  private def mayRepeat: Boolean = kind.concurrent || attempts.forall(_.state == Refused)

  /** Numbers of the attempts that are waited for, the oldest first. */
  private def running: Seq[Int] = attempts.indices.collect { case at if attempts(at).state == Running => at + 1 }

  private def replaced: Int = attempts.count(_.abortedNanos.isDefined)

  private def changed(number: Int)(change: RequestAttempt => RequestAttempt): Vector[RequestAttempt] =
    attempts.updated(number - 1, change(attempts(number - 1)))
}
