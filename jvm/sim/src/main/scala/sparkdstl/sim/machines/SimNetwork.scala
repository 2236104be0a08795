// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import java.io.IOException
import java.util.concurrent.TimeoutException

import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}

import sparkdstl.sim.world.{Chance, FaultKind, Faults}

/**
 * Asks between processes with the semantics of Spark's RPC: a message arrives at most once, messages overtake each other, and
 * a failed ask leaves the effect of its message unknown.
 */
final class SimNetwork(chance: Chance, faults: Faults, wire: SimProcess) {
  import SimNetwork.AskTimeoutMillis
  private var cutOff = Set.empty[SimProcess]

  /** Loses all messages from and to a process for a while. */
  def partition(process: SimProcess, millis: Double): Unit = {
    cutOff += process
    val _ = wire.after(millis)(cutOff -= process)
  }

  /** Sends an ask to `to`, which runs `handle`. */
  def ask[T](from: SimProcess, to: SimProcess)(handle: => Future[T]): Future[T] = {
    val promise = Promise[T]()
    val timeout = from.after(AskTimeoutMillis.toDouble) {
      val _ = promise.tryFailure(new TimeoutException(s"${to.name} did not answer in $AskTimeoutMillis ms"))
    }
    def answer(result: Try[T]): Unit = from.perform {
      timeout.cancel()
      val _ = promise.tryComplete(result)
    }
    if (to.isCrashed) {
      val _ = wire.after(delay())(answer(Failure(new IOException(s"no connection to ${to.name}"))))
    } else if (!loses(FaultKind.LostRequest, from, to))
      deliver(to) {
        Try(handle).fold(Future.failed, identity).onComplete { result =>
          if (!loses(FaultKind.LostReply, from, to)) {
            val _ = wire.after(delay())(answer(result match {
              case Success(value) => Success(value)
              case Failure(error) => Failure(new IOException(s"${to.name} failed to answer: $error"))
            }))
          }
        }(to.inline)
      }
    promise.future
  }

  /** Runs `action` in another process after the delay of a message. These are Spark's own messages, which are never lost. */
  def deliver(to: SimProcess)(action: => Unit): Unit = {
    val _ = wire.after(delay())(to.perform(action))
  }

  private def loses(kind: FaultKind, from: SimProcess, to: SimProcess): Boolean =
    cutOff(from) || cutOff(to) || faults.strikes(kind, chance)

  private def delay(): Double = faults.millis(FaultKind.SlowMessage, 0.5, chance)
}

object SimNetwork {

  /** The time after which an ask fails. */
  val AskTimeoutMillis = 5000L
}
