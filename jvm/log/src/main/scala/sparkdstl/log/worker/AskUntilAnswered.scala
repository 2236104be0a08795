package sparkdstl.log.worker

import java.util.concurrent.{TimeUnit, TimeoutException}

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime}
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
   *   after which nobody asks any more, nor waits for an answer, and the future fails with the last error
   * @param wanted
   *   asked before each further try; when it is false nobody asks any more either
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

    def begin(): Unit = later(timeoutMillis)(() => promise.tryFailure(silence): Unit).foreach { deadline =>
      promise.future.onComplete(_ => deadline.cancel())
      attempt(0)
    }

    private def attempt(silences: Int): Unit = {
      val asked =
        try link.ask(executorName, run, message)
        catch { case NonFatal(error) => Future.failed(error) }
      asked.onComplete {
        case Success(answer) => promise.trySuccess(Answer(answer, silences)): Unit
        case Failure(error) =>
          lastError = Some(error)
          askAgain(silences + 1, error)
      }
    }

    private def askAgain(silences: Int, error: Throwable): Unit = {
      val delay = math.min(FirstDelayMillis << math.min(silences - 1, 10), LongestDelayMillis)
      val jittered = math.round(delay * (0.5 + runtime.random.nextDouble()))
      val inTime = runtime.timer.nowNanos + TimeUnit.MILLISECONDS.toNanos(jittered) < deadlineNanos
      if (inTime && !promise.isCompleted && wanted())
        later(jittered)(() => if (!promise.isCompleted) attempt(silences)): Unit
      else promise.tryFailure(error): Unit
    }

    /** Without a timer nobody can wait: what is asked has failed then. */
    private def later(millis: Long)(action: () => Unit): Option[Cancellable] =
      try Some(runtime.timer.schedule(millis)(action))
      catch {
        case NonFatal(error) =>
          promise.tryFailure(lastError.getOrElse(error))
          None
      }

    private def silence: Throwable =
      lastError.getOrElse(new TimeoutException(s"the driver has not answered for $timeoutMillis ms"))
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
