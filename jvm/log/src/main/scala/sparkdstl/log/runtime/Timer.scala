package sparkdstl.log.runtime

import java.util.concurrent.{ScheduledThreadPoolExecutor, ThreadFactory, TimeUnit}

/** Tells the time and runs actions later. Passed in, so that tests drive time by hand. */
trait Timer {

  /** Runs `action` once, `delayMillis` milliseconds from now, unless cancelled before. Actions must be short. */
  def schedule(delayMillis: Long)(action: () => Unit): Cancellable

  /** Nanoseconds since some fixed moment. */
  def nowNanos: Long
}

/** A thing that need not happen any more. Cancelling it again, or too late, does nothing. */
trait Cancellable {
  def cancel(): Unit
}

/** The real clock, with one thread of its own for the actions. */
final class ScheduledTimer(threads: ThreadFactory) extends Timer with AutoCloseable {
  private val executor = new ScheduledThreadPoolExecutor(1, threads)
  executor.setRemoveOnCancelPolicy(true)
  executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false)

  override def schedule(delayMillis: Long)(action: () => Unit): Cancellable = {
    val scheduled = executor.schedule((() => action()): Runnable, delayMillis, TimeUnit.MILLISECONDS)
    () => scheduled.cancel(false): Unit
  }

  override def nowNanos: Long = System.nanoTime()

  override def close(): Unit = executor.shutdown()
}
