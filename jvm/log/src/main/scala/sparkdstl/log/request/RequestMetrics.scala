package sparkdstl.log.request

import sparkdstl.log.metrics.{LatencyWindow, MetricGroup}
import sparkdstl.log.storage.OperationKind

/** Counts the outcomes of requests and their attempts, by operation. Thread-safe. */
final class RequestMetrics {
  private val byOperation = OperationKind.all.map(kind => kind -> new RequestCounters(kind)).toMap

  def of(operation: OperationKind): RequestCounters = byOperation(operation)

  /** Each metric's name, and its value now. */
  def all: Vector[(String, () => Long)] = OperationKind.all.toVector.flatMap(of(_).all)
}

final class RequestCounters(kind: OperationKind) extends MetricGroup(s"requests.${kind.name}") {
  val requests = counter("count")
  val attempts = counter("attempts")

  /** Attempts that began because the newest was slow. */
  val hedges = counter("hedges")

  /** Requests whose answer came from such an attempt. */
  val hedgesWon = counter("hedgesWon")

  /** Attempts that began after an error. */
  val retries = counter("retries")
  val attemptsFailed = counter("attemptsFailed")
  val failures = counter("failures")

  /** Requests that may have taken effect, or may yet. */
  val unknown = counter("unknown")

  /** Of requests that were answered, from the call to the answer. */
  val latency: LatencyWindow = latencies("latency", 2000, 50, 99, 999)
}
