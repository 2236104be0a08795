// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import java.util.concurrent.CancellationException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import sparkdstl.log.runtime.Cancellable

/**
 * Bounds memory: requests for more bytes than are free wait, in order of arrival. Nothing blocks. Thread-safe.
 *
 * A request larger than the budget is granted when no other memory is in use. One budget may serve all queries of a process;
 * users that can release memory listen for shortage.
 */
final class MemoryBudget(initialBytes: Long) extends AutoCloseable {
  require(initialBytes > 0, s"a budget must be positive, not $initialBytes")

  // All guarded by this.
  private var maxBytes = initialBytes
  private var used = 0L
  private val waiting = mutable.LinkedHashSet.empty[Acquisition]
  private val listeners = mutable.LinkedHashSet.empty[() => Unit]
  private var closed = false

  /** Requests `bytes`. After they are granted, the caller returns them with [[release]]. */
  def acquire(bytes: Long): Acquisition = {
    val acquisition = new Acquisition(bytes)
    val refused = synchronized {
      if (!closed) waiting += acquisition
      closed
    }
    if (refused) refuse(acquisition)
    else {
      grantWhatIsFree()
      if (!acquisition.granted.isCompleted) synchronized(listeners.toVector).foreach(_.apply())
    }
    acquisition
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

  /** Fails waiting and later requests with an `IllegalStateException`. */
  override def close(): Unit = {
    val refused = synchronized {
      closed = true
      val refused = waiting.toVector
      waiting.clear()
      refused
    }
    refused.foreach(refuse)
  }

  private def refuse(acquisition: Acquisition): Unit =
    acquisition.promise.tryFailure(new IllegalStateException("the uploader is closed")): Unit

  private def grantWhatIsFree(): Unit = {
    val granted = synchronized {
      val granted = mutable.ArrayBuffer.empty[Acquisition]
      while (waiting.headOption.exists(first => used == 0 || used + first.bytes <= maxBytes)) {
        val first = waiting.head
        waiting -= first
        used += first.bytes
        granted += first
      }
      granted
    }
    granted.foreach(_.promise.trySuccess(()))
  }

  /** A request for bytes. */
  final class Acquisition private[MemoryBudget] (private[MemoryBudget] val bytes: Long) {
    private[MemoryBudget] val promise = Promise[Unit]()
    def granted: Future[Unit] = promise.future

    /** Cancels the request unless it was granted, and returns whether it did; then [[granted]] fails. */
    def cancel(): Boolean = {
      val waited = MemoryBudget.this.synchronized(waiting.remove(this))
      if (waited) {
        promise.tryFailure(new CancellationException("the memory is no longer wanted"))
        grantWhatIsFree()
      }
      waited
    }
  }
}
