package sparkdstl.log.runtime

import scala.concurrent.ExecutionContext

/**
 * What the protocol takes from the world around it: time, chance and somewhere to run what follows an answer. The
 * simulation passes its own, so that one seed always gives the same run.
 *
 * @param timer
 *   tells the time, which only ever goes forward, and runs actions later
 * @param random
 *   chance, for names and jitter
 * @param executor
 *   runs continuations; they are short and never block
 */
final class ProtocolRuntime(val timer: Timer, val random: RandomSource, val executor: ExecutionContext)

/** Where chance comes from. Thread-safe. */
trait RandomSource {

  /** Uniform in 0 (inclusive) to 1 (exclusive). */
  def nextDouble(): Double

  /** A name nobody else will choose. */
  def nextUuid(): java.util.UUID
}
