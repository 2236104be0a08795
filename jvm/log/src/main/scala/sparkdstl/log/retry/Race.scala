package sparkdstl.log.retry

import sparkdstl.log.runtime.{Cancellable, Timer}

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

/**
 * The attempts of one task, up to the first success or the last error, and beyond: each that loses is told when it
 * ends.
 *
 * @param jittered
 *   spreads a delay in milliseconds
 * @param onDecided
 *   called once when there is an outcome, before anybody sees it
 */
private[retry] final class Race[T](
    task: Attempts[T],
    policy: RetryPolicy,
    timer: Timer,
    workers: WorkerThreads,
    isRetryable: Throwable => Boolean,
    jittered: Long => Long,
    metrics: UploadMetrics,
    onDecided: Race[T] => Unit
) {

  private val promise = Promise[Won[T]]()
  private val begunNanos = timer.nowNanos

  // All guarded by this. A decided race starts nothing any more.
  private var decided = false
  private var ended = 0
  private val errors = mutable.ArrayBuffer.empty[Throwable]
  private val works = mutable.ArrayBuffer.empty[workers.Work] // attempt n's is at n - 1
  private val silences = mutable.Map.empty[Int, Cancellable] // by attempt
  private val retries = mutable.ArrayBuffer.empty[Cancellable]

  def name: String = task.name

  def winner: Future[Won[T]] = promise.future

  /** Starts the first attempt. */
  def start(): Unit = {
    val _ = startAttemptIf(true)
  }

  /** Fails the race with `error`, unless it is decided. */
  def giveUp(error: Throwable): Unit = {
    val _ = decide(Failure(error), by = None)
  }

  /**
   * Starts another attempt if `wanted`, evaluated with the lock held, and if there may be more. Says whether it did.
   */
  private def startAttemptIf(wanted: => Boolean): Boolean = synchronized {
    val starts = !decided && works.size < policy.maxAttempts && wanted
    if (starts) {
      val attempt = works.size + 1
      metrics.attemptsStarted.increment()
      works += workers.submit(() => runAttempt(attempt))
    }
    starts
  }

  private def runAttempt(attempt: Int): Unit =
    if (watch(attempt)) {
      val begun = timer.nowNanos
      val outcome =
        try Success(task.run(attempt))
        catch { case e: Throwable => Failure(e) }
      outcome match {
        case Success(result) =>
          metrics.attemptLatency.record(timer.nowNanos - begun)
          if (!decide(Success(Won(attempt, result)), Some(attempt))) tellLoser(attempt, outcome)
        case Failure(error) =>
          metrics.attemptsFailed.increment()
          tellLoser(attempt, outcome)
          failed(attempt, error)
      }
    }

  /** Arms the timer that starts another attempt should this one be silent. False when there is nothing to run for. */
  private def watch(attempt: Int): Boolean = synchronized {
    if (!decided && attempt < policy.maxAttempts)
      policy.silenceMillis(metrics.attemptLatency.snapshot()).foreach { millis =>
        silences(attempt) = timer.schedule(millis)(() => hedge(attempt))
      }
    !decided
  }

  private def hedge(silent: Int): Unit =
    if (startAttemptIf(works.size == silent)) metrics.hedges.increment()

  private def retry(): Unit =
    if (startAttemptIf(true)) metrics.retries.increment()

  private def failed(attempt: Int, error: Throwable): Unit = {
    val failure = synchronized {
      silences.remove(attempt).foreach(_.cancel())
      errors += error
      ended += 1
      val hopeless = !isRetryable(error)
      if (!decided && !hopeless && works.size < policy.maxAttempts)
        retries += timer.schedule(jittered(policy.nextAttemptDelayMillis))(() => retry())
      Option.when(hopeless || ended == policy.maxAttempts)(new AttemptsFailed(name, errors.toSeq))
    }
    failure.foreach(e => decide(Failure(e), Some(attempt)))
  }

  /**
   * Ends the race, unless it is decided, and says whether this was it.
   *
   * @param by
   *   the attempt that has ended and so needs no interrupt
   */
  private def decide(outcome: Try[Won[T]], by: Option[Int]): Boolean = {
    val first = synchronized {
      val first = !decided
      decided = true
      first
    }
    if (first) {
      dismissOthers(by)
      count(outcome)
      onDecided(this)
      promise.complete(outcome)
    }
    first
  }

  private def dismissOthers(by: Option[Int]): Unit = {
    val others = synchronized {
      silences.values.foreach(_.cancel())
      retries.foreach(_.cancel())
      works.zipWithIndex.collect { case (work, index) if !by.contains(index + 1) => work }.toSeq
    }
    others.foreach(_.disposeOf())
  }

  private def count(outcome: Try[Won[T]]): Unit = outcome match {
    case Success(_) =>
      metrics.uploadsSucceeded.increment()
      metrics.uploadLatency.record(timer.nowNanos - begunNanos)
    case Failure(_) => metrics.uploadsFailed.increment()
  }

  private def tellLoser(attempt: Int, outcome: Try[T]): Unit = {
    metrics.losers.increment()
    try task.lost(attempt, outcome)
    catch { case NonFatal(e) => Race.log.warn(s"Could not clean up after attempt $attempt of $name", e) }
  }
}

private object Race {
  private val log = LoggerFactory.getLogger(classOf[Race[_]])
}
