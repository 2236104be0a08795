package sparkdstl.log.worker

import sparkdstl.log.metrics.MetricGroup

/** Counts the snapshots that a process makes. Thread-safe. */
final class MaterializationMetrics extends MetricGroup("materializations") {
  @volatile private var newest = (0L, 0L)

  val started = counter("started")
  private val held = counter("completed")

  /** Snapshots that are uploaded, and wait for a seal of their store. */
  val uploaded = counter("uploaded")

  /** Snapshots that no commit entry will hold, because the store's local state was replaced. */
  val abandoned = counter("abandoned")
  val failed = counter("failed")
  private val bytes = counter("bytes")
  gauge("lastBytes")(newest._1)
  gauge("lastMs")(newest._2)

  /**
   * A commit entry holds a snapshot.
   *
   * @param uploadedBytes what was uploaded for it
   * @param millis        from its beginning on
   */
  def completed(uploadedBytes: Long, millis: Long): Unit = {
    held()
    bytes(uploadedBytes)
    newest = (uploadedBytes, millis)
  }
}
