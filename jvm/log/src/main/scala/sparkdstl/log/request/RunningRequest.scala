package sparkdstl.log.request

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import sparkdstl.log.error.LogErrors
import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime}
import sparkdstl.log.storage.{Attempt, StorageErrors}

/** One request with its attempts, from [[start]] to its outcome, and beyond to the end of its last attempt. */
private[request] final class RunningRequest[T](
    kind: RequestKind,
    name: String,
    timeoutMillis: Long,
    attempt: Int => Attempt[T],
    options: RequestOptions,
    runtime: ProtocolRuntime,
    metrics: RequestMetrics,
    latencies: AttemptLatencies,
    hedges: HedgeBudget,
    late: LateRequests,
    accounts: RequestAccounts
) extends PendingRequest[T] {
  import RunningRequest._

  private val promise = Promise[Outcome[T]]()
  private val counters = metrics.of(kind)
  private val allowed = new Deadline(runtime.timer, timeoutMillis)

  // All guarded by this. Nothing is started once there is an outcome, or once an error was hopeless.
  private var decidedAtNanos = Option.empty[Long]
  private var hopeless = false
  private var started = 0
  private var replaced = 0
  private val underWay = mutable.LinkedHashMap.empty[Int, UnderWay] // by attempt
  private var errors = AttemptErrors()
  private var errorCount = 0
  private var allDefinite = true // of the errors
  private var deadline = Option.empty[Cancellable]
  private var silence = Option.empty[Cancellable] // of the newest attempt
  private var retry = Option.empty[LaterAttempt]

  counters.requests.increment()

  override def outcome: Future[Outcome[T]] = promise.future

  override def cancel(): Unit = giveUp("nobody waits for it any more")

  /** Starts the first attempt. Called once. */
  def start(): Unit =
    if (timeoutMillis <= 0) expire()
    else if (awaitDeadline()) begin(First): Unit
    else giveUp("there is no timer any more")

  /** Looks again when the deadline passes, or when this is late, if that is before; says whether it will. */
  private def awaitDeadline(): Boolean =
    later(math.min(allowed.leftMillis, LateRequests.LateMillis))(() => timePassed()) match {
      case Some(timer) =>
        keepUnlessDecided(timer) { deadline = Some(timer) }
        true
      case None => false
    }

  private def timePassed(): Unit =
    if (allowed.leftMillis <= 0 || !awaitDeadline()) expire()
    else synchronized(Option.when(decidedAtNanos.isEmpty)(progress)).foreach(late.note(_))

  /** What has become of it so far, for the log. Lock held. */
  private def progress: String = {
    val so = errors.last.fold("none was answered") { last =>
      s"$errorCount failed, the last: ${StorageErrors.describe(last)}"
    }
    val aborted = if (replaced == 0) "" else s", $replaced of them aborted"
    s"$name is not done after ${(timeoutMillis - allowed.leftMillis) / 1000} s, in $started attempt(s)$aborted; $so. " +
      s"Others begin until ${timeoutMillis / 1000} s have passed"
  }

  /** Ends the request at once, unless it has ended. */
  def giveUp(why: String): Unit = decide(interrupted(last => new RequestEnded(name, why, last))): Unit

  private def expire(): Unit =
    decide(interrupted(last => LogErrors.requestTimeout(name, timeoutMillis, started, last))): Unit

  /** Starts another attempt if there may be one, and says whether it did. */
  private def begin(reason: Reason): Boolean = {
    // Before it is certain, so that nobody finds quiet between the decision and the attempt.
    accounts.attemptStarted()
    val number = synchronized {
      // In one step: if it were neither to come nor under way for a moment, the request might end in it.
      val isWanted = reason match {
        case Retry(planned) => forget(planned)
        case First | Hedge(_) => true
      }
      Option.when(isWanted && mayBegin(reason)) {
        started += 1
        underWay(started) = new UnderWay(runtime.timer.nowNanos, reason)
        started
      }
    }
    if (number.isEmpty) accounts.attemptEnded()
    number.foreach { number =>
      count(reason)
      val startedAttempt =
        try Success(attempt(number))
        catch { case error: Throwable => Failure(error) }
      startedAttempt match {
        case Success(begun) => follow(number, begun)
        case Failure(error) => ended(number, Failure(error))
      }
    }
    number.isDefined
  }

  /** Lock held. */
  private def mayBegin(reason: Reason): Boolean = {
    val inOrder = reason match {
      case Hedge(silent) => started == silent && underWay.contains(silent)
      case First | Retry(_) => true
    }
    inOrder && decidedAtNanos.isEmpty && !hopeless && waitedFor.size < options.maxAttempts && mayAccompany
  }

  /** Attempts under way that were not aborted, the oldest first. Lock held. */
  private def waitedFor: Iterable[UnderWay] = underWay.values.filter(_.abortedNanos.isEmpty)

  /** Whether an attempt may be made although earlier ones may still take effect, or none of them may. Lock held. */
  private def mayAccompany: Boolean = kind.concurrent || (underWay.isEmpty && allDefinite)

  private def count(reason: Reason): Unit = {
    counters.attempts.increment()
    reason match {
      case First =>
      case Hedge(_) => counters.hedges.increment()
      case Retry(_) => counters.retries.increment()
    }
  }

  private def follow(number: Int, begun: Attempt[T]): Unit = {
    val wanted = synchronized {
      underWay.get(number).foreach(_.attempt = Some(begun))
      decidedAtNanos.isEmpty && underWay.get(number).forall(_.abortedNanos.isEmpty)
    }
    if (wanted) {
      if (kind.concurrent)
        options.silenceMillis(latencies.of(kind)).foreach(millis => awaitSilence(number, 0, millis))
    } else begun.cancel()
    begun.result.onComplete(ended(number, _))(runtime.executor)
  }

  /** Looks again when attempt `number` has been silent for `untilMillis`, which it was for `sinceMillis` so far. */
  private def awaitSilence(number: Int, sinceMillis: Long, untilMillis: Long): Unit =
    later(untilMillis - sinceMillis)(() => silent(number, untilMillis)).foreach { timer =>
      keepUnlessDecided(timer) {
        silence.foreach(_.cancel())
        silence = Some(timer)
      }
    }

  private def silent(number: Int, millis: Long): Unit = {
    val full = synchronized(waitedFor.size >= options.maxAttempts)
    val waitMillis = if (full) options.replacementMillis(kind, synchronized(replaced) + 1) else options.timeoutMillis
    if (millis >= waitMillis) {
      if (full) abortOldest(number)
      begin(Hedge(number)): Unit
    } else if (!full && hedges.take()) {
      if (!begin(Hedge(number))) hedges.giveBack()
    } else awaitSilence(number, millis, waitMillis)
  }

  /** Makes room for another attempt beside attempt `newest`. What is aborted may still take effect, and may answer. */
  private def abortOldest(newest: Int): Unit = {
    val oldest = synchronized {
      val oldest = if (decidedAtNanos.isEmpty && !hopeless && started == newest) waitedFor.headOption else None
      oldest.foreach { attempt =>
        attempt.abortedNanos = Some(runtime.timer.nowNanos)
        replaced += 1
      }
      oldest.flatMap(_.attempt)
    }
    oldest.foreach(_.cancel())
  }

  private def ended(number: Int, result: Try[T]): Unit = {
    val attempt = synchronized(underWay.remove(number))
    try
      attempt.foreach { attempt =>
        result match {
          case Success(value) => succeeded(attempt, value)
          case Failure(error) => failed(number, attempt, error)
        }
      }
    finally accounts.attemptEnded()
  }

  private def succeeded(attempt: UnderWay, value: T): Unit = {
    latencies.record(kind, runtime.timer.nowNanos - attempt.begunNanos)
    val won = decide(Some(Outcome.Done(value)))
    if (won && attempt.reason.isInstanceOf[Hedge]) counters.hedgesWon.increment()
  }

  private def failed(number: Int, attempt: UnderWay, error: Throwable): Unit = {
    counters.attemptsFailed.increment()
    synchronized(decidedAtNanos) match {
      case Some(decided) =>
        // Cancelled: it would have taken that long at least.
        if (decided > attempt.begunNanos) latencies.record(kind, decided - attempt.begunNanos)
      case None =>
        attempt.abortedNanos.foreach(aborted => latencies.record(kind, aborted - attempt.begunNanos))
        note(number, error)
        if (attempt.abortedNanos.isEmpty) retryLater()
        decide(conclusion()): Unit
    }
  }

  private def note(number: Int, error: Throwable): Unit = synchronized {
    errors += error
    errorCount += 1
    allDefinite &&= StorageErrors.isDefinite(error)
    hopeless ||= !StorageErrors.isRetryable(error)
    if (number == started) silence.foreach(_.cancel())
    if (hopeless) {
      retry.foreach(_.cancel())
      retry = None
    }
  }

  /** Has another attempt made, unless one is coming anyway or there is to be none. */
  private def retryLater(): Unit = {
    val delay = options.retryDelayMillis(synchronized(errorCount), runtime.random.nextDouble())
    val next = new LaterAttempt
    val wanted = synchronized {
      val wanted = decidedAtNanos.isEmpty && retry.isEmpty && !hopeless && options.retries &&
        (kind.concurrent || allDefinite) && delay < allowed.leftMillis
      if (wanted) retry = Some(next)
      wanted
    }
    if (wanted)
      later(delay)(() => begin(Retry(next)): Unit) match {
        case Some(timer) => next.timer = timer
        case None => forget(next): Unit
      }
  }

  /** Says whether `next` was still to be made. */
  private def forget(next: LaterAttempt): Boolean = synchronized {
    val pending = retry.contains(next)
    if (pending) retry = None
    pending
  }

  /** What comes of the request if there will be no further attempt, and none is silent that should be heard. Lock held. */
  private def conclusion(): Option[Outcome[T]] = {
    val askedInVain = hopeless && !kind.hasEffect
    Option.when(retry.isEmpty && (underWay.isEmpty || askedInVain)) {
      val error = errors.conclusion(name, started)
      if (mayHaveEffect) Outcome.Unknown(error) else Outcome.Failed(error)
    }
  }

  /** What comes of the request if it ends here. Lock held. */
  private def interrupted(error: Option[Throwable] => Throwable): Option[Outcome[T]] = {
    val cause = errors.withEarlier(error(errors.last))
    Some(if (mayHaveEffect) Outcome.Unknown(cause) else Outcome.Failed(cause))
  }

  /** Whether an attempt has taken effect for all we know, or may do so yet. Lock held. */
  private def mayHaveEffect: Boolean = kind.hasEffect && !(underWay.isEmpty && allDefinite)

  /**
   * Ends the request, if there is an outcome and was none before, and says whether this was it.
   *
   * @param result
   *   evaluated with the lock held, so that no attempt begins between the question and the decision
   */
  private def decide(result: => Option[Outcome[T]]): Boolean = {
    val now = runtime.timer.nowNanos
    val decision = synchronized {
      Option.when(decidedAtNanos.isEmpty)(result).flatten.map { outcome =>
        decidedAtNanos = Some(now)
        (outcome, Seq(deadline, silence, retry).flatten ++ underWay.values.flatMap(_.attempt))
      }
    }
    decision.foreach { case (outcome, unneeded) =>
      count(outcome, now)
      accounts.decided(this)
      promise.success(outcome)
      unneeded.foreach(_.cancel())
    }
    decision.isDefined
  }

  private def count(outcome: Outcome[T], nowNanos: Long): Unit = outcome match {
    case Outcome.Done(_) => counters.latency.record(nowNanos - allowed.begunNanos)
    case Outcome.Failed(_) => counters.failures.increment()
    case Outcome.Unknown(_) => counters.unknown.increment()
  }

  /** None when the timer takes no more. */
  private def later(millis: Long)(action: () => Unit): Option[Cancellable] =
    try Some(runtime.timer.schedule(millis)(action))
    catch { case NonFatal(_) => None }

  private def keepUnlessDecided(timer: Cancellable)(keep: => Unit): Unit = {
    val kept = synchronized {
      if (decidedAtNanos.isEmpty) keep
      decidedAtNanos.isEmpty
    }
    if (!kept) timer.cancel()
  }
}

private object RunningRequest {

  /** Why an attempt is started. */
  private sealed trait Reason
  private case object First extends Reason

  /** Because attempt `silent`, the newest, is. */
  private final case class Hedge(silent: Int) extends Reason

  /** Because there was an error. */
  private final case class Retry(planned: LaterAttempt) extends Reason

  /** An attempt to be made after a delay. */
  private final class LaterAttempt extends Cancellable {
    // Set right after the timer began to run; too late if that has fired already, which then does nothing.
    @volatile var timer: Cancellable = () => ()

    override def cancel(): Unit = timer.cancel()
  }

  private final class UnderWay(val begunNanos: Long, val reason: Reason) {
    var attempt: Option[Cancellable] = None
    var abortedNanos: Option[Long] = None
  }
}
