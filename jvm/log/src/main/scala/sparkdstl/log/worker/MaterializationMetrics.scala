// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import sparkdstl.log.metrics.MetricGroup

/** Counts the snapshots of a process. Thread-safe. */
final class MaterializationMetrics extends MetricGroup("materializations") {
  @volatile private var newest = (0L, 0L)

  val started = counter("started")
  private val held = counter("completed")

  /** Uploaded snapshots, which wait for a seal of their store. */
  val uploaded = counter("uploaded")

  /** Snapshots that were abandoned because the store's local state was replaced. */
  val abandoned = counter("abandoned")
  val failed = counter("failed")
  private val bytes = counter("bytes")
  gauge("lastBytes")(newest._1)
  gauge("lastMs")(newest._2)

  /** Counts a snapshot that a commit entry holds, with the bytes that were uploaded for it and its duration. */
  def completed(uploadedBytes: Long, millis: Long): Unit = {
    held()
    bytes(uploadedBytes)
    newest = (uploadedBytes, millis)
  }
}
