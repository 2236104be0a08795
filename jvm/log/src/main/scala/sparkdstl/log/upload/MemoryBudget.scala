package sparkdstl.log.upload

import scala.collection.mutable

/**
 * Bounds memory: who asks for more bytes than are free waits, in order of asking.
 *
 * A request larger than the whole budget is granted once nothing else is in use, rather than never.
 *
 * @param maxBytes
 *   the budget
 */
final class MemoryBudget(maxBytes: Long) extends AutoCloseable {
  require(maxBytes > 0, s"a budget must be positive, not $maxBytes")

  // All guarded by this.
  private var used = 0L
  private val waiting = mutable.Queue.empty[AnyRef]
  private var closed = false

  /** Takes `bytes` if they are free and nobody waits. */
  def tryAcquire(bytes: Long): Boolean = synchronized {
    refuseIfClosed()
    val granted = waiting.isEmpty && fits(bytes)
    if (granted) used += bytes
    granted
  }

  /**
   * Takes `bytes`, waiting for them if need be.
   *
   * @param onWaiting
   *   called once this call counts as waiting, without any lock: may cause others to release
   * @throws InterruptedException
   *   when interrupted while waiting; nothing is taken then
   * @throws IllegalStateException
   *   when closed
   */
  def acquire(bytes: Long)(onWaiting: () => Unit): Unit = {
    val ticket = new Object
    synchronized {
      refuseIfClosed()
      waiting += ticket
    }
    try {
      onWaiting()
      await(ticket, bytes)
    } finally leave(ticket)
  }

  def release(bytes: Long): Unit = synchronized {
    used -= bytes
    notifyAll()
  }

  /** Bytes taken now. */
  def inUse: Long = synchronized(used)

  /** How many callers wait now. */
  def waiters: Int = synchronized(waiting.size)

  /** Fails those that wait, and all that come. */
  override def close(): Unit = synchronized {
    closed = true
    notifyAll()
  }

  private def await(ticket: AnyRef, bytes: Long): Unit = synchronized {
    while (!closed && !((waiting.head eq ticket) && fits(bytes))) wait()
    refuseIfClosed()
    used += bytes
  }

  private def leave(ticket: AnyRef): Unit = synchronized {
    waiting -= ticket
    notifyAll()
  }

  private def fits(bytes: Long): Boolean = used == 0 || used + bytes <= maxBytes

  private def refuseIfClosed(): Unit = if (closed) throw new IllegalStateException("the uploader is closed")
}
