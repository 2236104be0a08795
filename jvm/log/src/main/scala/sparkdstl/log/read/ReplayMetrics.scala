package sparkdstl.log.read

import sparkdstl.log.metrics.MetricGroup

/** Counts what a process reads from the log to rebuild stores. Thread-safe. */
final class ReplayMetrics extends MetricGroup("replay") {

  /** Segments whose replay has begun. */
  val opened = counter("segments")

  /** Bytes of segments. */
  val read = counter("bytes")

  /** Change records that were applied to a store that was being loaded. */
  val replayed = counter("records")
  val loadedSnapshot = counter("snapshots")

  /** Snapshots that could not be loaded: damaged, incomplete, or not answered by storage. */
  val skippedSnapshot = counter("unusableSnapshots")
}
