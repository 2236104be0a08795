// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

/**
 * Limits hedges, so that hedging does not multiply the load of a slow storage: each request earns a tenth of a hedge, and at
 * most ten hedges are saved. Thread-safe.
 */
final class HedgeBudget {
  private final val Share = 0.1
  private final val Burst = 10.0

  // Guarded by this.
  private var saved = Burst

  def earn(): Unit = synchronized { saved = math.min(Burst, saved + Share) }

  /** Takes a hedge if one is saved, and returns whether it did. */
  def take(): Boolean = synchronized {
    // Tenths are not exact in binary: ten of them must make one hedge.
    val enough = saved >= 1 - 1e-9
    if (enough) saved -= 1
    enough
  }
}
