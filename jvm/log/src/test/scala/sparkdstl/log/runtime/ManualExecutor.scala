// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import java.util.{Collections, List => JavaList}
import java.util.concurrent.{AbstractExecutorService, TimeUnit}

import scala.collection.mutable

/** Runs its tasks on the test's thread when the test requests it. */
final class ManualExecutor extends AbstractExecutorService {
  // Guarded by this.
  private val tasks = mutable.Queue.empty[Runnable]

  override def execute(task: Runnable): Unit = synchronized(tasks += task: Unit)

  def pending: Int = synchronized(tasks.size)

  /** Runs the oldest task. */
  def runNext(): Unit = synchronized(tasks.dequeue()).run()

  /** Runs all tasks, including those that are submitted meanwhile. */
  def runAll(): Unit = while (pending > 0) runNext()

  // No test stops it.
  override def shutdown(): Unit = ()
  override def shutdownNow(): JavaList[Runnable] = Collections.emptyList()
  override def isShutdown: Boolean = false
  override def isTerminated: Boolean = false
  override def awaitTermination(timeout: Long, unit: TimeUnit): Boolean = false
}
