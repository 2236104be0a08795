// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.Success
import scala.util.control.NonFatal

/**
 * The protocol's environment: a monotonic clock that also schedules actions, randomness for names and jitter, and an executor
 * of continuations, which are short and never block. The simulation passes its own, so that a seed always gives the same run.
 */
final class ProtocolRuntime(val timer: Timer, val random: RandomSource, val executor: ExecutionContext) {

  /** Completes after `millis` milliseconds; fails if the timer is closed. */
  def after(millis: Long): Future[Unit] = {
    val due = Promise[Unit]()
    try timer.schedule(millis)(() => due.trySuccess(()): Unit): Unit
    catch { case NonFatal(error) => due.tryFailure(error): Unit }
    due.future
  }

  /** The result of `done`, or `late` if it has none after `millis` milliseconds or the timer is closed. */
  def within[T](millis: Long, done: Future[T])(late: => T): Future[T] = {
    val first = Promise[T]()
    try {
      val alarm = timer.schedule(millis)(() => first.trySuccess(late): Unit)
      done.onComplete { result =>
        alarm.cancel()
        first.tryComplete(result)
      }(executor)
    } catch { case NonFatal(_) => first.tryComplete(done.value.getOrElse(Success(late))): Unit }
    first.future
  }
}

/** A source of randomness. Thread-safe. */
trait RandomSource {

  /** Uniform in 0 (inclusive) to 1 (exclusive). */
  def nextDouble(): Double

  /** A unique random id. */
  def nextUuid(): java.util.UUID
}
