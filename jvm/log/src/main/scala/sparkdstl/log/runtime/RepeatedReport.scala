// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import scala.util.control.NonFatal

/** Reports the progress of a slow operation every ten seconds from [[start]] to [[end]], without a lock. Thread-safe. */
final class RepeatedReport(timer: Timer)(report: () => Unit) {
  private final val EveryMillis = 10000L
  // Guarded by this.
  private var next = Option.empty[Cancellable]
  private var ended = false

  /** The operation has begun. */
  def start(): Unit = synchronized {
    if (!ended)
      try next = Some(timer.schedule(EveryMillis)(() => due()))
      catch { case NonFatal(_) => () } // The timer is closed: the process ends.
  }

  /** The operation has ended; no further report begins. */
  def end(): Unit = synchronized {
    ended = true
    next.foreach(_.cancel())
  }

  private def due(): Unit = if (!synchronized(ended)) {
    report()
    start()
  }
}
