// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path

import sparkdstl.log.metrics.{Latencies, LatencyWindow}
import sparkdstl.log.storage.OperationKind

/**
 * The history of one storage: latencies of recent attempts by operation and size class, and the budget of hedges. Each storage
 * has its own, so that a slow bucket takes no hedges from a healthy one. Thread-safe.
 *
 * The windows include slow attempts, and cancelled ones with the time until then. Otherwise the percentiles would drift towards
 * fast attempts, and hedges would increase.
 */
final class StorageHistory {
  private final val Remembered = 200
  private val windows = new ConcurrentHashMap[(OperationKind, Int), LatencyWindow]

  private[request] val hedges = new HedgeBudget

  private[request] def record(kind: RequestKind, nanos: Long): Unit = window(kind).record(nanos)
  private[request] def latencies(kind: RequestKind): Latencies = window(kind).snapshot()

  private def window(kind: RequestKind): LatencyWindow =
    windows.computeIfAbsent((kind.operation, kind.sizeClass), _ => new LatencyWindow(Remembered))
}

/** The histories of all storages of a process. Thread-safe. */
final class StorageHistories {
  private val histories = new ConcurrentHashMap[String, StorageHistory]

  def of(path: Path): StorageHistory =
    histories.computeIfAbsent(s"${path.toUri.getScheme}://${path.toUri.getAuthority}", _ => new StorageHistory)
}

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
