// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import scala.collection.mutable

/** A clock that a test advances. Actions run on the thread that advances it, in order of their time. */
final class ManualTimer extends Timer {
  private case class Scheduled(atNanos: Long, order: Int, action: () => Unit)

  // Guarded by this.
  private var now = 0L
  private var scheduledSoFar = 0
  private val scheduled = mutable.Set.empty[Scheduled]

  override def nowNanos: Long = synchronized(now)

  override def schedule(delayMillis: Long)(action: () => Unit): Cancellable = synchronized {
    scheduledSoFar += 1
    val entry = Scheduled(now + delayMillis * 1000000, scheduledSoFar, action)
    scheduled += entry
    () => cancel(entry)
  }

  /** Advances time and runs the due actions, including those that are scheduled meanwhile. */
  def advance(millis: Long): Unit = {
    val target = nowNanos + millis * 1000000
    Iterator.continually(takeDue(target)).takeWhile(_.isDefined).flatten.foreach(_.action())
    synchronized { now = target }
  }

  def pending: Int = synchronized(scheduled.size)

  private def cancel(entry: Scheduled): Unit = synchronized {
    val _ = scheduled -= entry
  }

  private def takeDue(target: Long): Option[Scheduled] = synchronized {
    val due = scheduled.filter(_.atNanos <= target).minByOption(entry => (entry.atNanos, entry.order))
    due.foreach { entry =>
      scheduled -= entry
      now = math.max(now, entry.atNanos)
    }
    due
  }
}

/** A timer that has stopped and refuses actions. */
object StoppedTimer extends Timer {
  override def nowNanos: Long = 0

  override def schedule(delayMillis: Long)(action: () => Unit): Cancellable =
    throw new java.util.concurrent.RejectedExecutionException("shut down")
}
