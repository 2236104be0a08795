package sparkdstl.log.worker

import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}

import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{DriverLink, FromDriver, RunId, ToDriver}

/**
 * Asks the driver until it answers. All messages may be said more than once, so an ask that ended in silence is asked
 * again: after half a second at first, then ever less often.
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
   * @param timeoutMillis
   *   after which nobody asks any more, and the future fails with the last error
   * @param wanted
   *   asked before each further try; when it is false nobody asks any more either
   */
  def apply(message: ToDriver, timeoutMillis: Long, wanted: () => Boolean = () => true): Future[Answer] = {
    val promise = Promise[Answer]()
    attempt(message, runtime.timer.nowNanos + TimeUnit.MILLISECONDS.toNanos(timeoutMillis), 0, wanted, promise)
    promise.future
  }

  private def attempt(
      message: ToDriver,
      deadlineNanos: Long,
      silences: Int,
      wanted: () => Boolean,
      promise: Promise[Answer]
  ): Unit =
    link.ask(executorName, run, message).onComplete {
      case Success(answer) => promise.success(Answer(answer, silences))
      case Failure(error) =>
        val delay = math.min(FirstDelayMillis << math.min(silences, 10), LongestDelayMillis)
        val jittered = math.round(delay * (0.5 + runtime.random.nextDouble()))
        val inTime = runtime.timer.nowNanos + TimeUnit.MILLISECONDS.toNanos(jittered) < deadlineNanos
        if (inTime && wanted())
          runtime.timer.schedule(jittered) { () =>
            attempt(message, deadlineNanos, silences + 1, wanted, promise)
          }: Unit
        else promise.failure(error)
    }
}

private[worker] object AskUntilAnswered {
  private val FirstDelayMillis = 500L
  private val LongestDelayMillis = 10000L

  /**
   * @param silences
   *   how many asks before the answered one ended without an answer, and may have been taken
   */
  final case class Answer(message: FromDriver, silences: Int)
}
