// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import java.util.{Collections, List => JavaList}
import java.util.concurrent.{AbstractExecutorService, TimeUnit}

import scala.collection.mutable

/** Runs its tasks on the test's thread when the test requests it. */
final class ManualExecutor extends AbstractExecutorService {
  // Guarded by this.
  private val tasks = mutable.Queue.empty[Runnable]
  private var stopped = false

  override def execute(task: Runnable): Unit = synchronized {
    if (stopped) throw new java.util.concurrent.RejectedExecutionException("stopped")
    tasks += task: Unit
  }

  def pending: Int = synchronized(tasks.size)

  /** Runs the oldest task. */
  def runNext(): Unit = synchronized(tasks.dequeue()).run()

  /** Runs all tasks, including those that are submitted meanwhile. */
  def runAll(): Unit = while (pending > 0) runNext()

  override def shutdown(): Unit = synchronized { stopped = true }

  override def shutdownNow(): JavaList[Runnable] = {
    shutdown()
    Collections.emptyList()
  }

  override def isShutdown: Boolean = synchronized(stopped)

  override def isTerminated: Boolean = isShutdown && pending == 0

  override def awaitTermination(timeout: Long, unit: TimeUnit): Boolean = isTerminated
}
