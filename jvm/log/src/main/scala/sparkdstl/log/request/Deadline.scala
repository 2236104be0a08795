package sparkdstl.log.request

import sparkdstl.log.runtime.Timer

/** How much is left of the time that something may take, from now on. */
private[request] final class Deadline(timer: Timer, timeoutMillis: Long) {

  /** When the time began, by the timer's clock. */
  val begunNanos: Long = timer.nowNanos

  /** 0 or less once the time is over. */
  def leftMillis: Long = timeoutMillis - (timer.nowNanos - begunNanos) / 1000000
}
