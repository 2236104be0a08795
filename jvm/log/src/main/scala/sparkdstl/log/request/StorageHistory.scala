package sparkdstl.log.request

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path

import sparkdstl.log.metrics.{Latencies, LatencyWindow}
import sparkdstl.log.storage.OperationKind

/**
 * What is known of one storage: the latencies of recent attempts by operation and size class, and how many attempts may still
 * begin early. Shared by all requests to it, and by none to another: a slow bucket takes no hedges from a healthy one.
 * Thread-safe.
 *
 * Slow attempts count too, and cancelled ones with the time they had: without them the windows would drift towards the fast
 * ones, and hedges would increase.
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

  /** The history of the storage that holds `path`. */
  def of(path: Path): StorageHistory =
    histories.computeIfAbsent(s"${path.toUri.getScheme}://${path.toUri.getAuthority}", _ => new StorageHistory)
}
