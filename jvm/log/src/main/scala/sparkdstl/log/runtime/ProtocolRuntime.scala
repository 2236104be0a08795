package sparkdstl.log.runtime

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.control.NonFatal

/**
 * What the protocol takes from the world around it: time, chance and somewhere to run continuations. The simulation passes
 * its own, so that one seed always gives the same run.
 *
 * @param timer a monotonic clock, which also runs actions later
 * @param random chance, for names and jitter
 * @param executor runs continuations; they are short and never block
 */
final class ProtocolRuntime(val timer: Timer, val random: RandomSource, val executor: ExecutionContext) {

  /** Completes after so many milliseconds; fails if the timer takes no more actions. */
  def after(millis: Long): Future[Unit] = {
    val due = Promise[Unit]()
    try timer.schedule(millis)(() => due.trySuccess(()): Unit): Unit
    catch { case NonFatal(error) => due.tryFailure(error): Unit }
    due.future
  }
}

/** Where chance comes from. Thread-safe. */
trait RandomSource {

  /** Uniform in 0 (inclusive) to 1 (exclusive). */
  def nextDouble(): Double

  /** A name that is never chosen again. */
  def nextUuid(): java.util.UUID
}
