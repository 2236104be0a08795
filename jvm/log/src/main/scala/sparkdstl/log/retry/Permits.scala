package sparkdstl.log.retry

import scala.collection.mutable

/** Hands out a limited number of permits, in order of asking. Nobody blocks: who must wait is called later. */
private[retry] final class Permits(limit: Int) {
  // Guarded by this.
  private var taken = 0
  private val waiting = mutable.Queue.empty[() => Unit]
  private var closed = false

  /** Calls `action` once it has a permit: at once, or on the thread that gives one back. */
  def acquire(action: () => Unit): Unit = {
    val now = synchronized {
      if (closed) false
      else if (taken < limit) {
        taken += 1
        true
      } else {
        waiting += action
        false
      }
    }
    if (now) action()
  }

  /** Gives a permit back. */
  def release(): Unit = {
    val next = synchronized {
      if (waiting.isEmpty) taken -= 1
      Option.when(waiting.nonEmpty)(waiting.dequeue())
    }
    next.foreach(_.apply())
  }

  /** Calls nobody any more. */
  def close(): Unit = synchronized {
    closed = true
    waiting.clear()
  }
}
