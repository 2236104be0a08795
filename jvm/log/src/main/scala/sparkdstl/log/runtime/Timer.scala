// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import java.util.concurrent.{ScheduledThreadPoolExecutor, ThreadFactory, TimeUnit}

/** A clock that also schedules actions. Passed in, so that tests drive time by hand. */
trait Timer {

  /** Runs `action` once, `delayMillis` milliseconds from now, unless cancelled before. Actions must be short. */
  def schedule(delayMillis: Long)(action: () => Unit): Cancellable

  /** Nanoseconds since a fixed moment. */
  def nowNanos: Long
}

/** A scheduled or running action. Repeated and late cancellations have no effect. */
trait Cancellable {
  def cancel(): Unit
}

/** The system clock, with one thread for the actions. */
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
