// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import java.util.concurrent.{RejectedExecutionException, ScheduledThreadPoolExecutor, ThreadFactory, TimeUnit}

import org.slf4j.LoggerFactory

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
  private val logger = LoggerFactory.getLogger(classOf[ScheduledTimer])
  private val executor = new ScheduledThreadPoolExecutor(1, threads)
  executor.setRemoveOnCancelPolicy(true)
  executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false)

  override def schedule(delayMillis: Long)(action: () => Unit): Cancellable = {
    val scheduled = executor.schedule((() => reporting(action)): Runnable, delayMillis, TimeUnit.MILLISECONDS)
    () => scheduled.cancel(false): Unit
  }

  /** The executor would keep errors in its futures, which are not read. */
  private def reporting(action: () => Unit): Unit =
    try action()
    catch {
      case _: RejectedExecutionException if executor.isShutdown =>
      case fatal: VirtualMachineError =>
        val thread = Thread.currentThread()
        thread.getUncaughtExceptionHandler.uncaughtException(thread, fatal)
      case error: Throwable => logger.error("A scheduled action failed", error)
    }

  override def nowNanos: Long = System.nanoTime()
  override def close(): Unit = executor.shutdown()
}
