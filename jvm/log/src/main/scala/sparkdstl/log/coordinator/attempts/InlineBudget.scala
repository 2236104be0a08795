// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.attempts

import java.util.concurrent.atomic.AtomicLong

/** Bounds the bytes of small segments in a driver's memory, over all its queries. Thread-safe. */
class InlineBudget(maxBytes: Long) {
  private val used = new AtomicLong

  /** Takes `bytes` if they are free. */
  def tryAcquire(bytes: Long): Boolean = {
    val before = used.getAndUpdate(used => if (bytes == 0 || used + bytes <= maxBytes) used + bytes else used)
    bytes == 0 || before + bytes <= maxBytes
  }

  def release(bytes: Long): Unit = used.addAndGet(-bytes): Unit
  def inUse: Long = used.get
}
