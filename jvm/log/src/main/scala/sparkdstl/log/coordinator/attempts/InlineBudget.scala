package sparkdstl.log.coordinator.attempts

/**
 * Bounds the bytes of small segments that a driver holds, over all its queries. Thread-safe.
 *
 * @param maxBytes
 *   the budget
 */
final class InlineBudget(maxBytes: Long) {
  // Guarded by this.
  private var used = 0L

  /** Takes `bytes` if they are free. */
  def tryAcquire(bytes: Long): Boolean = synchronized {
    val fits = bytes == 0 || used + bytes <= maxBytes
    if (fits) used += bytes
    fits
  }

  def release(bytes: Long): Unit = synchronized(used -= bytes)

  /** Bytes held now. */
  def inUse: Long = synchronized(used)
}
