package sparkdstl.log.coordinator

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.LongAdder

import sparkdstl.log.request.LatencyWindow
import sparkdstl.log.transport.BarrierReport

/** Counts what becomes of a driver's batches, over all its queries. Thread-safe. */
final class CommitMetrics {
  private val commits = new LongAdder
  private val failures = new LongAdder
  private val refusedSeals = new LongAdder
  private val entryBytes = new LongAdder
  private val inlineBytes = new LongAdder
  private val uploadedBytes = new LongAdder
  private val failedDeletions = new LongAdder
  private val waits = new LatencyWindow(CommitMetrics.Remembered)
  private val writes = new LatencyWindow(CommitMetrics.Remembered)

  private[coordinator] def committed(report: BarrierReport): Unit = {
    commits.increment()
    entryBytes.add(report.entryBytes)
    inlineBytes.add(report.inlineBytes)
    uploadedBytes.add(report.uploadedBytes)
    waits.record(TimeUnit.MILLISECONDS.toNanos(report.waitMillis))
    writes.record(TimeUnit.MILLISECONDS.toNanos(report.writeMillis))
  }

  private[coordinator] def failed(): Unit = failures.increment()

  private[coordinator] def refused(): Unit = refusedSeals.increment()

  private[coordinator] def deletionFailed(): Unit = failedDeletions.increment()

  def snapshot(): CommitMetrics.Snapshot = {
    val (waited, written) = (waits.snapshot(), writes.snapshot())
    CommitMetrics.Snapshot(
      commits.sum,
      failures.sum,
      refusedSeals.sum,
      entryBytes.sum,
      inlineBytes.sum,
      uploadedBytes.sum,
      failedDeletions.sum,
      waited.percentileNanos(0.5),
      waited.percentileNanos(0.99),
      written.percentileNanos(0.5),
      written.percentileNanos(0.99)
    )
  }
}

object CommitMetrics {
  private val Remembered = 500

  /**
   * Values of a moment. Counts and bytes are since the start, times are of the last 500 batches.
   *
   * @param failures
   *   batches that could not be committed, or of which it is not known
   * @param refusedSeals
   *   task attempts whose changes were not taken
   * @param entryBytes
   *   of commit entries, with what Spark writes there
   * @param inlineBytes
   *   of segments in commit entries
   * @param uploadedBytes
   *   of segments in data files that commit entries name
   * @param failedDeletions
   *   rounds of retention that could not delete something; it is tried again
   * @param waitP50Nanos
   *   of the barrier, until all segments were durable
   * @param writeP50Nanos
   *   of the commit entry
   */
  final case class Snapshot(
      commits: Long,
      failures: Long,
      refusedSeals: Long,
      entryBytes: Long,
      inlineBytes: Long,
      uploadedBytes: Long,
      failedDeletions: Long,
      waitP50Nanos: Long,
      waitP99Nanos: Long,
      writeP50Nanos: Long,
      writeP99Nanos: Long
  )
}
