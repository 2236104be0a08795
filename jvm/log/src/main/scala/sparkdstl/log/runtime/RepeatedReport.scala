package sparkdstl.log.runtime

import scala.util.control.NonFatal

/**
 * Reports the progress of something slow: every ten seconds from its start until its end. Thread-safe.
 *
 * @param report called without a lock
 */
final class RepeatedReport(timer: Timer)(report: () => Unit) {
  private final val EveryMillis = 10000L
  // Guarded by this.
  private var next = Option.empty[Cancellable]
  private var ended = false

  /** It has begun. */
  def start(): Unit = synchronized {
    if (!ended)
      try next = Some(timer.schedule(EveryMillis)(() => due()))
      catch { case NonFatal(_) => () } // The process ends.
  }

  /** It has ended; from now on no report begins. */
  def end(): Unit = synchronized {
    ended = true
    next.foreach(_.cancel())
  }

  private def due(): Unit = if (!synchronized(ended)) {
    report()
    start()
  }
}
