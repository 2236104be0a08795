package sparkdstl.log.request

import java.util.concurrent.atomic.LongAdder

import sparkdstl.log.storage.OperationKind

/** Counts the outcomes of requests and their attempts, by operation. Thread-safe. */
final class RequestMetrics {
  private val counters = OperationKind.all.map(_ -> new RequestMetrics.Counters).toMap

  private[request] def of(kind: RequestKind): RequestMetrics.Counters = counters(kind.operation)

  def snapshotOf(operation: OperationKind): RequestMetrics.Snapshot = counters(operation).snapshot()
}

object RequestMetrics {

  /**
   * Values of a moment. Counts are since the start.
   *
   * @param hedges
   *   attempts started because the newest was slow
   * @param hedgesWon
   *   requests whose answer came from such an attempt
   * @param retries
   *   attempts started after an error
   * @param unknown
   *   requests that may have taken effect, or may yet
   * @param latencyP50Nanos
   *   of the last 2000 requests that were answered, from the call to the answer
   */
  final case class Snapshot(
      requests: Long,
      attempts: Long,
      hedges: Long,
      hedgesWon: Long,
      retries: Long,
      attemptsFailed: Long,
      failures: Long,
      unknown: Long,
      latencyP50Nanos: Long,
      latencyP99Nanos: Long,
      latencyP999Nanos: Long
  )

  private[request] final class Counters {
    val requests = new LongAdder
    val attempts = new LongAdder
    val hedges = new LongAdder
    val hedgesWon = new LongAdder
    val retries = new LongAdder
    val attemptsFailed = new LongAdder
    val failures = new LongAdder
    val unknown = new LongAdder
    val latency = new LatencyWindow(2000)

    def snapshot(): Snapshot = {
      val latencies = latency.snapshot()
      Snapshot(
        requests.sum,
        attempts.sum,
        hedges.sum,
        hedgesWon.sum,
        retries.sum,
        attemptsFailed.sum,
        failures.sum,
        unknown.sum,
        latencies.percentileNanos(0.5),
        latencies.percentileNanos(0.99),
        latencies.percentileNanos(0.999)
      )
    }
  }
}
