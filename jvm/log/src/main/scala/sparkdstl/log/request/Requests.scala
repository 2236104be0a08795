// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}

import org.slf4j.LoggerFactory

import sparkdstl.log.runtime.{Latency, ProtocolRuntime}
import sparkdstl.log.storage.Attempt

/**
 * Makes requests, each with a deadline and any number of attempts.
 *
 * - Hedges: when the newest attempt takes longer than recent ones of its kind ([[RequestOptions.hedgeMillis]]), another begins
 *   if the [[HedgeBudget]] allows; after `options.timeoutMillis` another always begins. If `options.maxAttempts` are running,
 *   the oldest is aborted for it ([[RequestOptions.replacementMillis]]).
 * - Retries: after a retryable error ([[sparkdstl.log.storage.StorageErrors.isRetryable]]) another attempt begins, with a delay
 *   that grows with each error, until the deadline.
 * - Outcome: the first success counts. A read fails when no attempt is left, or at its deadline. A write fails only if storage
 *   has refused each of its attempts; otherwise it ends unknown, at the deadline if attempts are under way.
 *
 * The outcome cancels all other attempts. Slow requests are logged while they are under way. Thread-safe and non-blocking.
 *
 * @param history of the storage
 * @param warn logs a warning
 * @param isStarting whether errors that need an operator end a request after [[RequestOptions.StartMillis]]: at the start of a
 *   query, a user waits for the answer. Later the query waits for the operator.
 */
final class Requests(
    val options: RequestOptions,
    val runtime: ProtocolRuntime,
    val metrics: RequestMetrics = new RequestMetrics,
    private[request] val history: StorageHistory = new StorageHistory,
    warn: String => Unit = Requests.logger.warn(_),
    private[request] val isStarting: () => Boolean = () => false
) extends AutoCloseable {

  private[request] val slow = new SlowRequests(runtime.timer, warn)

  // All guarded by this.
  private val undecided = mutable.LinkedHashSet.empty[RunningRequest[_]]
  private var attemptsUnderWay = 0
  private var writesUnderWay = 0 // undecided writes, and running attempts at writes
  private var quiet = Promise[Unit]() // completed when that number gets zero
  private var unansweredNanos = Option.empty[Long] // when the last attempt at a write ended without an answer
  private var closed = false

  /**
   * Starts a request, with `name` in errors: "put of s3a://...". `attempt` begins the attempt with that number, from 1 on,
   * without blocking. Does not throw, and the future does not fail.
   */
  def run[T](kind: RequestKind, name: String, timeoutMillis: Long)(attempt: Int => Attempt[T]): Future[Outcome[T]] = {
    val begin = options.slowness.fold(attempt)(slowness => number => slowed(slowness)(attempt(number)))
    val request = new RunningRequest[T](kind, name, timeoutMillis, begin, this)
    history.hedges.earn()
    val accepted = synchronized {
      if (!closed) {
        undecided += request
        if (kind.isWrite) writesUnderWay += 1
      }
      !closed
    }
    if (accepted) request.start() else request.giveUp(Requests.Closed)
    request.outcome
  }

  /** An attempt that begins after a random delay, also if it is cancelled before. */
  private def slowed[T](slowness: Latency)(attempt: => Attempt[T]): Attempt[T] = {
    implicit val executor: ExecutionContext = runtime.executor
    val begun = runtime.after(math.round(slowness.millis(Latency.gaussian(runtime.random)))).map(_ => attempt)
    new Attempt(begun.flatMap(_.result), () => begun.foreach(_.cancel()))
  }

  /** Ends all current and later requests, as failed or unknown. Cancelled writes may continue until [[whenQuiet]]. */
  override def close(): Unit = {
    val abandoned = synchronized {
      closed = true
      undecided.toVector
    }
    abandoned.foreach(_.giveUp(Requests.Closed))
  }

  /** Completes when no write is under way, nor an attempt at a write that has its outcome. */
  def whenQuiet: Future[Unit] = synchronized(if (writesUnderWay == 0) Future.unit else quiet.future)

  /**
   * Completes when [[whenQuiet]] has, and [[Requests.LateMillis]] after the last attempt at a write that ended without an answer:
   * storage may have the whole request by then, and carry it out.
   */
  def whenSettled: Future[Unit] = whenQuiet.flatMap { _ =>
    val sinceNanos = synchronized(unansweredNanos).map(runtime.timer.nowNanos - _)
    sinceNanos.map(Requests.LateMillis - _ / 1000000).filter(_ > 0).fold(Future.unit)(runtime.after)
  }(runtime.executor)

  /** Attempts under way, those of requests with an outcome included. */
  def underWay: Int = synchronized(attemptsUnderWay)

  private[request] def attemptStarted(kind: RequestKind): Unit = synchronized {
    attemptsUnderWay += 1
    if (kind.isWrite) writesUnderWay += 1
  }

  /** Called after the end of an attempt was handled. `isAnswered` is whether storage has said what it did. */
  private[request] def attemptEnded(kind: RequestKind, isAnswered: Boolean): Unit = {
    synchronized {
      attemptsUnderWay -= 1
      if (kind.isWrite && !isAnswered) unansweredNanos = Some(runtime.timer.nowNanos)
    }
    if (kind.isWrite) writeEnded()
  }

  private[request] def decided(request: RunningRequest[_]): Unit = {
    val wasUndecided = synchronized(undecided.remove(request))
    if (wasUndecided && request.kind.isWrite) writeEnded()
  }

  private def writeEnded(): Unit = {
    val isQuiet = synchronized {
      writesUnderWay -= 1
      Option.when(writesUnderWay == 0) {
        val last = quiet
        quiet = Promise()
        last
      }
    }
    isQuiet.foreach(_.success(()))
  }
}

private object Requests {
  private val logger = LoggerFactory.getLogger(classOf[Requests])
  private val Closed = "no more requests are made here"

  /** How long after its end an attempt that was not answered may still take effect. */
  private val LateMillis = 3000L
}
