package sparkdstl.log.retry

import java.util.concurrent.atomic.LongAdder

/** Counts what becomes of uploads and their attempts. Thread-safe. */
final class UploadMetrics {
  private[log] val uploadsStarted = new LongAdder
  private[log] val uploadsSucceeded = new LongAdder
  private[log] val uploadsFailed = new LongAdder
  private[log] val attemptsStarted = new LongAdder
  private[log] val attemptsFailed = new LongAdder
  private[log] val hedges = new LongAdder
  private[log] val retries = new LongAdder
  private[log] val losers = new LongAdder
  private[log] val interruptedLosers = new LongAdder
  private[log] val uploadedBytes = new LongAdder
  private[log] val blockedNanos = new LongAdder
  private[log] val discardedObjects = new LongAdder
  private[log] val discardFailures = new LongAdder

  /**
   * Of all attempts that succeeded, late losers too: without these the window would drift towards the fast ones, and
   * hedges would become ever more.
   */
  private[log] val attemptLatency = new LatencyWindow(200)

  /** From the call to the first success. */
  private[log] val uploadLatency = new LatencyWindow(2000)

  def snapshot(): UploadMetrics.Snapshot = {
    val latencies = uploadLatency.snapshot()
    UploadMetrics.Snapshot(
      uploadsStarted.sum,
      uploadsSucceeded.sum,
      uploadsFailed.sum,
      attemptsStarted.sum,
      attemptsFailed.sum,
      hedges.sum,
      retries.sum,
      losers.sum,
      interruptedLosers.sum,
      uploadedBytes.sum,
      blockedNanos.sum,
      discardedObjects.sum,
      discardFailures.sum,
      latencies.percentileNanos(0.5),
      latencies.percentileNanos(0.99),
      latencies.percentileNanos(0.999)
    )
  }
}

object UploadMetrics {

  /**
   * Values of a moment. Counts are since the start.
   *
   * @param hedges
   *   attempts started because the newest was silent
   * @param retries
   *   attempts started after an error
   * @param losers
   *   attempts that ended without having won, by error or late success
   * @param blockedNanos
   *   time that writers have spent waiting for memory
   * @param discardFailures
   *   objects that could not be deleted and may be left in storage
   * @param latencyP50Nanos
   *   of the last 2000 uploads that succeeded, all attempts and waiting for a thread included
   */
  final case class Snapshot(
      uploadsStarted: Long,
      uploadsSucceeded: Long,
      uploadsFailed: Long,
      attemptsStarted: Long,
      attemptsFailed: Long,
      hedges: Long,
      retries: Long,
      losers: Long,
      interruptedLosers: Long,
      uploadedBytes: Long,
      blockedNanos: Long,
      discardedObjects: Long,
      discardFailures: Long,
      latencyP50Nanos: Long,
      latencyP99Nanos: Long,
      latencyP999Nanos: Long
  )
}
