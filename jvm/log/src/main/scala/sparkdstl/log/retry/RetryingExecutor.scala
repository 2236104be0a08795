package sparkdstl.log.retry

import sparkdstl.log.runtime.Timer

import java.io.IOException
import java.util.concurrent.ExecutorService

import scala.collection.mutable
import scala.concurrent.Future
import scala.util.Try

/** What is to be done once, in one or more attempts that do not disturb each other. */
trait Attempts[T] {

  /** For errors. */
  def name: String

  /**
   * Tries. Several attempts may run at a time, each on a thread of its own.
   *
   * @param attempt
   *   from 1 on: what it leaves in storage must differ from what other attempts leave
   */
  def run(attempt: Int): T

  /**
   * Called once for each attempt that has run and did not win, when it ended: what it left behind can go. An attempt
   * that failed may have left something as well. Called on the attempt's thread; must not block for long.
   */
  def lost(attempt: Int, outcome: Try[T]): Unit
}

/** The attempt that succeeded first, and its result. */
final case class Won[T](attempt: Int, result: T)

/**
 * All attempts have failed, or one did in a way that another would not mend. The last error is the cause, the others
 * are suppressed exceptions.
 */
final class AttemptsFailed(name: String, errors: Seq[Throwable])
    extends IOException(s"$name failed, in ${errors.size} attempt(s): ${errors.last}", errors.last) {
  errors.init.foreach(addSuppressed)
}

/** The executor was closed before the task had an outcome. */
final class RetryingExecutorClosed(name: String) extends IOException(s"$name was given up: the executor is closed")

/**
 * Runs a task until one of its attempts succeeds, starting another whenever the newest has been silent for too long
 * or one has failed. The first success wins.
 *
 * A timeout never ends an attempt: when all are silent, we wait on for any. A task fails when each of
 * `policy.maxAttempts` attempts has ended with an error, or at once when an error is not worth another attempt.
 *
 * Threads: at most `numThreads` undecided tasks run at a time, and `numThreads * policy.maxAttempts` threads are
 * theirs, so a hedge always finds a thread, whatever the others are stuck in. A decided task makes room for the next
 * at once, though a loser may still be stuck: it keeps its thread until somebody needs it, then it is interrupted
 * (see [[WorkerThreads]]).
 *
 * @param threads
 *   starts every task at once, such as a cached thread pool; owned by this, shut down by [[close]]
 * @param isRetryable
 *   whether another attempt may succeed after that error
 * @param random
 *   uniform in 0 to 1, for the jitter: delays after errors are spread over 0.5 to 1.5 times their length
 */
final class RetryingExecutor(
    policy: RetryPolicy,
    numThreads: Int,
    timer: Timer,
    threads: ExecutorService,
    isRetryable: Throwable => Boolean,
    random: () => Double,
    metrics: UploadMetrics
) extends AutoCloseable {

  private val permits = new Permits(numThreads)
  private val workers =
    new WorkerThreads(numThreads * policy.maxAttempts, threads, () => metrics.interruptedLosers.increment())

  // Guarded by this.
  private val undecided = mutable.LinkedHashSet.empty[Race[_]]
  private var closed = false

  /** Runs `task`, and tells the winning attempt. Returns at once. */
  def run[T](task: Attempts[T]): Future[Won[T]] = {
    metrics.uploadsStarted.increment()
    val race = new Race[T](task, policy, timer, workers, isRetryable, jittered, metrics, decided)
    val accepted = synchronized {
      if (!closed) undecided += race
      !closed
    }
    if (accepted) permits.acquire(() => race.start())
    else race.giveUp(new RetryingExecutorClosed(task.name))
    race.winner
  }

  /** How many attempts hold a thread now, losers that are still stuck included. */
  def busyThreads: Int = workers.busy

  /** Fails all tasks that have no outcome yet with [[RetryingExecutorClosed]], and interrupts what runs. */
  override def close(): Unit = {
    val abandoned = synchronized {
      closed = true
      undecided.toSeq
    }
    permits.close()
    // Before their attempts are interrupted, whose errors would be misleading.
    abandoned.foreach(race => race.giveUp(new RetryingExecutorClosed(race.name)))
    workers.close()
  }

  private def decided(race: Race[_]): Unit =
    if (synchronized(undecided.remove(race))) permits.release()

  private def jittered(delayMillis: Long): Long = math.round(delayMillis * (0.5 + random()))
}
