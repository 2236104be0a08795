package sparkdstl.log.request

import java.util.concurrent.TimeUnit

import sparkdstl.log.runtime.Timer

/** The time that something may take, from now on. */
private[log] final class Deadline(timer: Timer, timeoutMillis: Long) {
  private val begunNanos = timer.nowNanos

  def elapsedMillis: Long = TimeUnit.NANOSECONDS.toMillis(timer.nowNanos - begunNanos)

  /** 0 or less once the time is over. */
  def leftMillis: Long = timeoutMillis - elapsedMillis
}
