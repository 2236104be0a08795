// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.util.concurrent.ExecutionException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import sparkdstl.log.error.{Causes, LogErrors}
import sparkdstl.log.runtime.Cancellable
import sparkdstl.log.storage.{Attempt, StorageErrors}

/** Runs one request as its [[RequestState]] decides, until its last attempt has ended. */
private[request] final class RunningRequest[T](
    val kind: RequestKind,
    name: String,
    timeoutMillis: Long,
    attempt: Int => Attempt[T],
    requests: Requests
) {
  import AttemptReason._
  import requests.{history, options, runtime}

  private val promise = Promise[Outcome[T]]()
  private val counters = requests.metrics.of(kind.operation)
  private val begunNanos = runtime.timer.nowNanos
  private val deadlineNanos = begunNanos + timeoutMillis * 1000000

  // All guarded by this.
  private var state = RequestState(kind, options)
  private val underWay = mutable.Map.empty[Int, Cancellable] // running attempts, by number
  private var alarm = Option.empty[(Long, Cancellable)] // with its time
  private var slowNanos = begunNanos + SlowRequests.SlowMillis * 1000000

  counters.requests()

  def outcome: Future[Outcome[T]] = promise.future
  def start(): Unit = if (timeoutMillis <= 0) expire() else proceed(_ => Right(First))

  /** Ends the request unless it has an outcome. */
  def giveUp(why: String): Unit =
    decide(state => Some(state.interrupted(last => new RequestEnded(name, why, last)))): Unit

  private def expire(): Unit = decide { state =>
    Some(state.interrupted(LogErrors.requestTimeout(name, timeoutMillis, state.attempts.size, _)))
  }: Unit

  private def wake(atNanos: Long): Unit = {
    val now = runtime.timer.nowNanos
    val progress = synchronized {
      alarm = alarm.filter(_._1 != atNanos)
      Option.when(!state.isDecided && slowNanos <= now && now < deadlineNanos) {
        slowNanos += SlowRequests.SlowMillis * 1000000
        state.progress
      }
    }
    progress.foreach { soFar =>
      val seconds = (now - begunNanos) / 1000000000
      requests.slow.note(
        s"$name is not done after $seconds s, in $soFar. Others begin until ${timeoutMillis / 1000} s have passed"
      )
    }
    if (deadlineNanos <= now) expire() else proceed()
  }

  private def proceed(): Unit = proceed(_.due(runtime.timer.nowNanos, () => history.hedges.take()))

  /** Begins an attempt if one is due, and sets the alarm for the next. */
  private def proceed(due: RequestState => Either[RequestState, AttemptReason]): Unit = {
    val now = runtime.timer.nowNanos
    val (isAwake, begun, aborted) = synchronized {
      if (state.isDecided) (true, None, None)
      else {
        val reason = due(state)
        val next = reason.fold(identity, state.begin(_, now, options.hedgeMillis(history.latencies(kind))))
        if (!setAlarm(next, now)) (false, None, None)
        else {
          val aborted = reason.toOption.flatMap(_ => state.oldestToAbort).flatMap(underWay.remove)
          state = next
          reason.foreach(count)
          // Counted under the lock, so that `Requests` is not quiet between the decision and the attempt.
          reason.foreach(_ => requests.attemptStarted(kind))
          (true, reason.toOption.map(_ => next.attempts.size), aborted)
        }
      }
    }
    aborted.foreach(_.cancel())
    begun.foreach(run)
    if (!isAwake) giveUp("there is no timer any more")
  }

  /** Schedules the next wake-up for state `next`; false if the timer is closed. Lock held. */
  private def setAlarm(next: RequestState, nowNanos: Long): Boolean = {
    val atNanos = (next.wakeNanos.toVector :+ deadlineNanos :+ slowNanos).min
    alarm.exists(_._1 <= atNanos) || {
      alarm.foreach(_._2.cancel())
      val millis = math.max(0, atNanos - nowNanos + 999999) / 1000000
      alarm =
        try Some(atNanos -> runtime.timer.schedule(millis)(() => wake(atNanos)))
        catch { case NonFatal(_) => None }
      alarm.isDefined
    }
  }

  private def count(reason: AttemptReason): Unit = {
    counters.attempts()
    reason match {
      case First =>
      case Slow => counters.hedges()
      case Retry => counters.retries()
    }
  }

  private def run(number: Int): Unit = {
    val started =
      try Success(attempt(number))
      catch { case error: Throwable => Failure(error) }
    started match {
      case Failure(error) => ended(number, Failure(error))
      case Success(begun) =>
        val isWanted = synchronized {
          val isWanted = state.isRunning(number)
          if (isWanted) underWay(number) = begun
          isWanted
        }
        if (!isWanted) begun.cancel()
        begun.result.onComplete {
          // A future wraps an `Error`.
          case Failure(wrapped: ExecutionException) if wrapped.getCause.isInstanceOf[Error] =>
            ended(number, Failure(wrapped.getCause))
          case result => ended(number, result)
        }(runtime.executor)
    }
  }

  private def ended(number: Int, result: Try[T]): Unit =
    try {
      val now = runtime.timer.nowNanos
      val attempt = synchronized {
        underWay.remove(number)
        state = result match {
          case Success(_) => state.succeeded(number)
          case Failure(error) =>
            state.failed(number, error, now, deadlineNanos, runtime.random.nextDouble(), requests.isStarting())
        }
        state.attempts(number - 1)
      }
      attempt.latencyNanos(now).foreach(history.record(kind, _))
      result match {
        case Success(value) =>
          if (decide(_ => Some(Outcome.Done(value))) && attempt.reason == Slow) counters.hedgesWon()
        case Failure(error) =>
          counters.attemptsFailed()
          if (!decide(_.conclusion(name))) {
            if (number == 1 && StorageErrors.needsOperator(error))
              requests.slow.note(
                s"$name has failed: ${Causes.describe(error)}. It is tried again until ${retriedMillis / 1000} s have passed"
              )
            proceed()
          }
      }
    } finally requests.attemptEnded(kind, result.fold(AttemptState.of(_) == AttemptState.Refused, _ => true))

  /** How long the request is tried again after an error that needs an operator. */
  private def retriedMillis: Long =
    if (requests.isStarting()) math.min(RequestOptions.StartMillis, timeoutMillis) else timeoutMillis

  /** Ends the request if there is a first outcome, and returns whether it did. */
  private def decide(outcomeOf: RequestState => Option[Outcome[T]]): Boolean = {
    val now = runtime.timer.nowNanos
    val decision = synchronized {
      Option.when(!state.isDecided)(outcomeOf(state)).flatten.map { outcome =>
        state = state.decided(now)
        val unneeded = underWay.values.toVector ++ alarm.map(_._2)
        underWay.clear()
        (outcome, unneeded)
      }
    }
    decision.foreach { case (outcome, unneeded) =>
      outcome match {
        case Outcome.Done(_) => counters.latency.record(now - begunNanos)
        case Outcome.Failed(_) => counters.failures()
        case Outcome.Unknown(_) => counters.unknown()
      }
      requests.decided(this)
      promise.success(outcome)
      unneeded.foreach(_.cancel())
    }
    decision.isDefined
  }
}
