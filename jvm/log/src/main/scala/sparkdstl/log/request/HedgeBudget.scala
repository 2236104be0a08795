package sparkdstl.log.request

/**
 * Bounds how many attempts are started early, so that a storage that is slow as a whole is not asked several times as
 * much: each request earns a share of an early attempt, and some are saved for a bad moment. Thread-safe.
 *
 * @param share early attempts earned by each request
 * @param burst how many may be saved; they are there from the start
 */
final class HedgeBudget(share: Double = 0.1, burst: Double = 10) {
  // Guarded by this.
  private var saved = burst

  /** A request was made. */
  def earn(): Unit = synchronized { saved = math.min(burst, saved + share) }

  /** Whether an attempt may be started early; it is counted if so. */
  def take(): Boolean = synchronized {
    // Shares are not exact in binary: ten of them must be one.
    val enough = saved >= 1 - 1e-9
    if (enough) saved -= 1
    enough
  }
}
