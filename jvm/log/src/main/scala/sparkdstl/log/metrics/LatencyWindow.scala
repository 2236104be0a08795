// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.metrics

/** Holds the last `capacity` latencies. Thread-safe. */
final class LatencyWindow(capacity: Int) {
  // A ring buffer whose first `count` places are filled. Guarded by this.
  private val nanos = new Array[Long](capacity)
  private var next = 0
  private var count = 0

  def record(latencyNanos: Long): Unit = synchronized {
    nanos(next) = latencyNanos
    next = (next + 1) % capacity
    count = math.min(count + 1, capacity)
  }

  def snapshot(): Latencies = {
    val sorted = synchronized(nanos.take(count))
    java.util.Arrays.sort(sorted)
    new Latencies(sorted)
  }
}

/** A snapshot of latencies, in nanoseconds. */
final class Latencies private[metrics] (sorted: Array[Long]) {
  def count: Int = sorted.length

  /** The smallest latency that a share (0 to 1) of all does not exceed; 0 without latencies. */
  def percentileNanos(share: Double): Long =
    if (sorted.isEmpty) 0 else sorted(math.max(0, math.ceil(share * sorted.length).toInt - 1))
}
