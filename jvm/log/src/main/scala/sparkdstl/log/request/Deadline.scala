// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.util.concurrent.TimeUnit

import sparkdstl.log.runtime.Timer

/** A deadline that begins now. */
private[log] final class Deadline(timer: Timer, val timeoutMillis: Long) {
  private val begunNanos = timer.nowNanos

  def elapsedMillis: Long = TimeUnit.NANOSECONDS.toMillis(timer.nowNanos - begunNanos)

  /** Time until the deadline; 0 or less after it. */
  def leftMillis: Long = timeoutMillis - elapsedMillis
}
