// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import sparkdstl.log.metrics.{LatencyWindow, MetricGroup}
import sparkdstl.log.storage.OperationKind

/** Counts the outcomes of requests and their attempts, by operation. Thread-safe. */
final class RequestMetrics {
  private val byOperation = OperationKind.all.map(kind => kind -> new RequestCounters(kind)).toMap

  def of(operation: OperationKind): RequestCounters = byOperation(operation)
  def all: Vector[(String, () => Long)] = OperationKind.all.toVector.flatMap(of(_).all)
}

final class RequestCounters(kind: OperationKind) extends MetricGroup(s"requests.${kind.name}") {
  val requests = counter("count")
  val attempts = counter("attempts")
  val hedges = counter("hedges")

  /** Requests that were answered by a hedge. */
  val hedgesWon = counter("hedgesWon")

  val retries = counter("retries")
  val attemptsFailed = counter("attemptsFailed")
  val failures = counter("failures")

  /** Requests with an unknown outcome. */
  val unknown = counter("unknown")

  /** From the call to the answer, of answered requests. */
  val latency: LatencyWindow = latencies("latency", 2000, 50, 99, 999)
}
