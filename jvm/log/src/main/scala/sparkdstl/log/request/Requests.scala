package sparkdstl.log.request

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.Attempt

/**
 * Makes requests: each has a deadline and as many attempts as it takes.
 *
 * - Timeouts: when the newest attempt takes longer than recent ones of its kind, another begins beside it
 *   ([[RequestOptions.hedgeMillis]]) as far as the [[HedgeBudget]] allows; after `options.timeoutMillis`, always. When
 *   `options.maxAttempts` are waited for, the oldest is aborted for it ([[RequestOptions.replacementMillis]]).
 * - Errors: after one there is another attempt, later with each error, until the deadline. Not after an error that
 *   another attempt would not mend ([[sparkdstl.log.storage.StorageErrors.isRetryable]]).
 * - Outcome: the first success counts. A read fails when no attempt is left or when its deadline passes. A write fails
 *   only if each of its attempts has ended in storage's own answer that it was not done; else it ends unknown, after
 *   attempts under way had until the deadline.
 *
 * With the outcome all other attempts are cancelled and no further one begins. Slow requests are logged while they are under
 * way. Thread-safe; nothing blocks.
 *
 * @param history of the storage that all requests go to
 * @param warn writes a line to the log
 */
final class Requests(
    val options: RequestOptions,
    val runtime: ProtocolRuntime,
    val metrics: RequestMetrics = new RequestMetrics,
    private[request] val history: StorageHistory = new StorageHistory,
    warn: String => Unit = Requests.logger.warn(_)
) extends AutoCloseable {

  private[request] val slow = new SlowRequests(runtime.timer, warn)

  // All guarded by this.
  private val undecided = mutable.LinkedHashSet.empty[RunningRequest[_]]
  private val waitingForQuiet = mutable.LinkedHashSet.empty[Promise[Boolean]]
  private var attemptsUnderWay = 0
  private var closed = false

  /**
   * Starts a request. Does not throw, and the future does not fail.
   *
   * @param name what is requested of what, for errors: "put of s3a://..."
   * @param timeoutMillis until the deadline, in milliseconds
   * @param attempt starts the attempt of that number, from 1 on, without blocking
   */
  def run[T](kind: RequestKind, name: String, timeoutMillis: Long)(attempt: Int => Attempt[T]): Future[Outcome[T]] = {
    val request = new RunningRequest[T](kind, name, timeoutMillis, attempt, this)
    history.hedges.earn()
    val accepted = synchronized {
      if (!closed) undecided += request
      !closed
    }
    if (accepted) request.start() else request.giveUp(Requests.Closed)
    request.outcome
  }

  /**
   * Ends all requests at once, as failed or unknown, and all that come. Attempts are cancelled, but may continue (see
   * [[whenQuiet]]).
   */
  override def close(): Unit = {
    val abandoned = synchronized {
      closed = true
      undecided.toVector
    }
    abandoned.foreach(_.giveUp(Requests.Closed))
  }

  /**
   * Completes when no attempt is under way any more: with true, or with false after `timeoutMillis` milliseconds.
   * Meant for after [[close]]: before it, another attempt may start at any time.
   */
  def whenQuiet(timeoutMillis: Long): Future[Boolean] = {
    val promise = Promise[Boolean]()
    val timeout =
      try Some(runtime.timer.schedule(timeoutMillis)(() => promise.trySuccess(false): Unit))
      catch { case NonFatal(_) => None }
    val quiet = synchronized {
      if (attemptsUnderWay > 0 && timeout.isDefined) waitingForQuiet += promise
      attemptsUnderWay == 0
    }
    if (quiet || timeout.isEmpty) promise.trySuccess(quiet): Unit
    promise.future.onComplete { _ =>
      timeout.foreach(_.cancel())
      synchronized(waitingForQuiet -= promise)
    }(runtime.executor)
    promise.future
  }

  /** How many attempts have not ended, those of requests that have an outcome included. */
  def underWay: Int = synchronized(attemptsUnderWay)

  private[request] def attemptStarted(): Unit = synchronized(attemptsUnderWay += 1)

  /** Called after everything that follows from the attempt's end. */
  private[request] def attemptEnded(): Unit = {
    val quiet = synchronized {
      attemptsUnderWay -= 1
      if (attemptsUnderWay == 0) waitingForQuiet.toVector else Vector.empty
    }
    quiet.foreach(_.trySuccess(true))
  }

  private[request] def decided(request: RunningRequest[_]): Unit = synchronized(undecided -= request): Unit
}

private object Requests {
  private val logger = LoggerFactory.getLogger(classOf[Requests])
  private val Closed = "no more requests are made here"
}
