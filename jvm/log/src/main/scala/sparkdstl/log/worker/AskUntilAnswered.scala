package sparkdstl.log.worker

import java.util.concurrent.{TimeUnit, TimeoutException}

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime}
import sparkdstl.log.transport.{DriverLink, FromDriver, RunId, ToDriver}

/**
 * Sends a message to the driver until it answers. Messages may be repeated, so an ask that timed out or failed is repeated:
 * after half a second at first, then with growing delays.
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
   *   after which the future fails with the last error
   * @param wanted
   *   evaluated before each further try; false ends the tries
   */
  def apply(message: ToDriver, timeoutMillis: Long, wanted: () => Boolean = () => true): Future[Answer] = {
    val asking = new Asking(message, timeoutMillis, wanted)
    asking.begin()
    asking.answer
  }

  private final class Asking(message: ToDriver, timeoutMillis: Long, wanted: () => Boolean) {
    private val promise = Promise[Answer]()
    private val deadlineNanos = runtime.timer.nowNanos + TimeUnit.MILLISECONDS.toNanos(timeoutMillis)
    @volatile private var lastError: Option[Throwable] = None

    def answer: Future[Answer] = promise.future

    def begin(): Unit = later(timeoutMillis)(() => promise.tryFailure(timeout): Unit).foreach { deadline =>
      promise.future.onComplete(_ => deadline.cancel())
      attempt(0)
    }

    private def attempt(timeouts: Int): Unit = {
      val asked =
        try link.ask(executorName, run, message)
        catch { case NonFatal(error) => Future.failed(error) }
      asked.onComplete {
        case Success(answer) => promise.trySuccess(Answer(answer, timeouts)): Unit
        case Failure(error) =>
          lastError = Some(error)
          askAgain(timeouts + 1, error)
      }
    }

    private def askAgain(timeouts: Int, error: Throwable): Unit = {
      val delay = math.min(FirstDelayMillis << math.min(timeouts - 1, 10), LongestDelayMillis)
      val jittered = math.round(delay * (0.5 + runtime.random.nextDouble()))
      val inTime = runtime.timer.nowNanos + TimeUnit.MILLISECONDS.toNanos(jittered) < deadlineNanos
      if (inTime && !promise.isCompleted && wanted())
        later(jittered)(() => if (!promise.isCompleted) attempt(timeouts)): Unit
      else promise.tryFailure(error): Unit
    }

    /** Without a timer the ask fails. */
    private def later(millis: Long)(action: () => Unit): Option[Cancellable] =
      try Some(runtime.timer.schedule(millis)(action))
      catch {
        case NonFatal(error) =>
          promise.tryFailure(lastError.getOrElse(error))
          None
      }

    private def timeout: Throwable =
      lastError.getOrElse(new TimeoutException(s"the driver has not answered for $timeoutMillis ms"))
  }
}

private[worker] object AskUntilAnswered {
  private val FirstDelayMillis = 500L
  private val LongestDelayMillis = 10000L

  /**
   * @param timeouts
   *   how many asks before the answered one ended without an answer, and may have been taken
   */
  final case class Answer(message: FromDriver, timeouts: Int)
}
