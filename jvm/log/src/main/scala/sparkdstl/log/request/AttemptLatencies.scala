package sparkdstl.log.request

import java.util.concurrent.ConcurrentHashMap

import sparkdstl.log.metrics.{Latencies, LatencyWindow}
import sparkdstl.log.storage.OperationKind

/**
 * How long recent attempts took, by operation and size class. Thread-safe.
 *
 * Slow attempts count too, and cancelled ones with the time they had: without them the windows would drift towards the fast
 * ones, and hedges would increase.
 */
final class AttemptLatencies {
  private val windows = new ConcurrentHashMap[(OperationKind, Int), LatencyWindow]

  private[request] def record(kind: RequestKind, nanos: Long): Unit = windowOf(kind).record(nanos)

  private[request] def of(kind: RequestKind): Latencies = windowOf(kind).snapshot()

  private def windowOf(kind: RequestKind): LatencyWindow =
    windows.computeIfAbsent((kind.operation, kind.sizeClass), _ => new LatencyWindow(AttemptLatencies.Remembered))
}

private object AttemptLatencies {
  val Remembered = 200
}
