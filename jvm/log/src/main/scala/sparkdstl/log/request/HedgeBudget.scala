package sparkdstl.log.request

/**
 * Bounds how many attempts are started early, so that a storage that is slow as a whole is not asked several times as
 * much: each request earns a tenth of an early attempt, and ten at most are saved for a bad moment. Thread-safe.
 */
final class HedgeBudget {
  private final val Share = 0.1
  private final val Burst = 10.0

  // Guarded by this.
  private var saved = Burst

  /** A request was made. */
  def earn(): Unit = synchronized { saved = math.min(Burst, saved + Share) }

  /** Whether an attempt may be started early; it is counted if so. */
  def take(): Boolean = synchronized {
    // Shares are not exact in binary: ten of them must be one.
    val enough = saved >= 1 - 1e-9
    if (enough) saved -= 1
    enough
  }
}
