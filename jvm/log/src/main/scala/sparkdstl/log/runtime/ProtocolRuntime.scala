// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import scala.concurrent.{ExecutionContext, Future, Promise}
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
}

/** A source of randomness. Thread-safe. */
trait RandomSource {

  /** Uniform in 0 (inclusive) to 1 (exclusive). */
  def nextDouble(): Double

  /** A unique random id. */
  def nextUuid(): java.util.UUID
}
