// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import sparkdstl.log.metrics.MetricGroup

/** Counts a process's reads of the log for rebuilding stores. Thread-safe. */
final class ReplayMetrics extends MetricGroup("replay") {

  /** Segments whose replay has begun. */
  val opened = counter("segments")

  val read = counter("bytes")

  /** Change records that were applied to stores. */
  val replayed = counter("records")

  val loadedSnapshot = counter("snapshots")

  /** Snapshots that could not be loaded: damaged, incomplete, or without an answer of storage. */
  val skippedSnapshot = counter("unusableSnapshots")
}
