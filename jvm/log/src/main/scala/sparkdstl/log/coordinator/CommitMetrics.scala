// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.util.concurrent.TimeUnit

import sparkdstl.log.metrics.MetricGroup
import sparkdstl.log.transport.BarrierReport

/** Counts the batches of a driver, over all its queries. Thread-safe. */
final class CommitMetrics extends MetricGroup("commits") {
  private final val Remembered = 500
  private val commits = counter("count")

  /** Batches whose commit failed or has an unknown outcome. */
  private[coordinator] val failed = counter("failures")

  private[coordinator] val refused = counter("refusedSeals")

  /** Bytes of commit entries, with Spark's part. */
  private val entryBytes = counter("entryBytes")

  private val inlineBytes = counter("inlineBytes")
  private val uploadedBytes = counter("uploadedBytes")
  private val waits = latencies("barrierWait", Remembered, 50, 99)
  private val writes = latencies("entryWrite", Remembered, 50, 99)

  /** Rounds of retention that failed and are retried. */
  private[coordinator] val deletionFailed = counter("failedDeletions")

  private[coordinator] def committed(report: BarrierReport): Unit = {
    commits()
    entryBytes(report.entryBytes)
    inlineBytes(report.inlineBytes)
    uploadedBytes(report.uploadedBytes)
    waits.record(TimeUnit.MILLISECONDS.toNanos(report.waitMillis))
    writes.record(TimeUnit.MILLISECONDS.toNanos(report.writeMillis))
  }
}
