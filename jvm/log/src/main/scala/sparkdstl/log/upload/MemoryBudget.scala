// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import sparkdstl.log.runtime.Cancellable

/**
 * Bounds memory: requests for more bytes than are free wait, in order of arrival. Nothing blocks. Thread-safe.
 *
 * A request larger than the budget is granted when no other memory is in use. One budget may serve all queries of a process;
 * users that can release memory listen for shortage.
 */
final class MemoryBudget(initialBytes: Long) {
  import MemoryBudget._
  require(initialBytes > 0, s"a budget must be positive, not $initialBytes")

  // All guarded by this.
  private var maxBytes = initialBytes
  private var used = 0L
  private val waiting = mutable.Queue.empty[Request]
  private val listeners = mutable.LinkedHashSet.empty[() => Unit]

  /** Completes when `bytes` are granted, which the caller returns with [[release]]. */
  def acquire(bytes: Long): Future[Unit] = {
    val request = new Request(bytes)
    synchronized(waiting.enqueue(request)): Unit
    grantWhatIsFree()
    if (!request.granted.isCompleted) synchronized(listeners.toVector).foreach(_.apply())
    request.granted.future
  }

  def release(bytes: Long): Unit = {
    synchronized(used -= bytes)
    grantWhatIsFree()
  }

  /** Raises the budget to at least `bytes`. */
  def ensureAtLeast(bytes: Long): Unit = {
    synchronized { maxBytes = math.max(maxBytes, bytes) }
    grantWhatIsFree()
  }

  /** Calls `action`, without a lock, whenever a request begins to wait. */
  def onShortage(action: () => Unit): Cancellable = {
    val listener = () => action()
    synchronized(listeners += listener)
    () => synchronized(listeners -= listener): Unit
  }

  def inUse: Long = synchronized(used)
  def waiters: Int = synchronized(waiting.size)
  def listening: Int = synchronized(listeners.size)

  private def grantWhatIsFree(): Unit = {
    val granted = synchronized {
      val granted = mutable.ArrayBuffer.empty[Request]
      while (waiting.headOption.exists(first => used == 0 || used + first.bytes <= maxBytes)) {
        val first = waiting.dequeue()
        used += first.bytes
        granted += first
      }
      granted
    }
    granted.foreach(_.granted.success(()))
  }
}

private object MemoryBudget {
  private final class Request(val bytes: Long) {
    val granted: Promise[Unit] = Promise()
  }
}
