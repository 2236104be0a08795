// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import sparkdstl.log.runtime.Timer

/**
 * Logs slow requests while they are under way. Many requests tend to be slow at the same time, so it logs at most one line per
 * [[SlowRequests.SlowMillis]], with the number of the others. Thread-safe.
 */
private[request] final class SlowRequests(timer: Timer, warn: String => Unit) {

  // Both guarded by this.
  private var loggedNanos = Option.empty[Long]
  private var unlogged = 0

  /** Logs or counts a request that has been slow for another [[SlowRequests.SlowMillis]]. */
  def note(what: => String): Unit = {
    val now = timer.nowNanos
    val others = synchronized {
      val due = loggedNanos.forall(now - _ >= SlowRequests.SlowMillis * 1000000)
      val others = Option.when(due)(unlogged)
      unlogged = if (due) 0 else unlogged + 1
      if (due) loggedNanos = Some(now)
      others
    }
    others.foreach(count =>
      warn(if (count == 0) what else s"$what. $count other request(s) are slow, or were recently")
    )
  }
}

private[request] object SlowRequests {

  /** A request is slow after this time, and is noted again after each further one. */
  val SlowMillis = 30000L
}
