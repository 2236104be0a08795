// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import java.util.concurrent.TimeoutException

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import sparkdstl.log.request.Deadline
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{DriverLink, FromDriver, RunId, ToDriver}

/**
 * Sends a message to the driver until it answers. Messages are idempotent, so asks that fail or time out are repeated, with
 * delays that grow from half a second.
 */
private[worker] final class AskUntilAnswered(
    link: DriverLink,
    executorName: String,
    run: RunId,
    runtime: ProtocolRuntime
) {
  import AskUntilAnswered._
  private implicit val executor: ExecutionContext = runtime.executor

  /**
   * Sends `message`. After `timeoutMillis`, the future fails with the last error. `wanted` is evaluated before each
   * repetition; false ends them.
   */
  def apply(message: ToDriver, timeoutMillis: Long, wanted: () => Boolean = () => true): Future[Answer] = {
    val answer = Promise[Answer]()
    val deadline = new Deadline(runtime.timer, timeoutMillis)
    @volatile var lastError: Throwable =
      new TimeoutException(s"the driver has not answered for $timeoutMillis ms")
    def attempt(timeouts: Int): Unit = ask(message).onComplete {
      case Success(reply) => answer.trySuccess(Answer(reply, timeouts)): Unit
      case Failure(error) =>
        lastError = error
        val delay = delayMillis(timeouts)
        if (delay < deadline.leftMillis && !answer.isCompleted && wanted())
          runtime.after(delay).onComplete(timer =>
            if (timer.isFailure) answer.tryFailure(error): Unit
            else if (!answer.isCompleted) attempt(timeouts + 1)
          )
        else answer.tryFailure(error): Unit
    }
    try {
      val alarm = runtime.timer.schedule(timeoutMillis)(() => answer.tryFailure(lastError): Unit)
      answer.future.onComplete(_ => alarm.cancel())
      attempt(0)
    } catch { case NonFatal(error) => answer.tryFailure(error): Unit }
    answer.future
  }

  private def ask(message: ToDriver): Future[FromDriver] =
    try link.ask(executorName, run, message)
    catch { case NonFatal(error) => Future.failed(error) }

  private def delayMillis(timeouts: Int): Long = {
    val delay = math.min(FirstDelayMillis << math.min(timeouts, 10), LongestDelayMillis)
    math.round(delay * (0.5 + runtime.random.nextDouble()))
  }
}

private[worker] object AskUntilAnswered {
  private val FirstDelayMillis = 500L
  private val LongestDelayMillis = 10000L

  /** @param timeouts the number of earlier asks without an answer, which the driver may have processed */
  final case class Answer(message: FromDriver, timeouts: Int)
}
