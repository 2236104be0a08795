package sparkdstl.log.upload

import java.util.concurrent.atomic.LongAdder

/** Counts what becomes of an executor's data files. Requests are counted by [[sparkdstl.log.request.RequestMetrics]]. */
final class UploadMetrics {
  private[log] val uploadsStarted = new LongAdder
  private[log] val uploadsSucceeded = new LongAdder
  private[log] val uploadsFailed = new LongAdder
  private[log] val uploadedBytes = new LongAdder
  private[log] val blockedNanos = new LongAdder
  private[log] val discardedObjects = new LongAdder
  private[log] val discardFailures = new LongAdder
  private[log] val discardsGivenUp = new LongAdder

  def snapshot(): UploadMetrics.Snapshot =
    UploadMetrics.Snapshot(
      uploadsStarted.sum,
      uploadsSucceeded.sum,
      uploadsFailed.sum,
      uploadedBytes.sum,
      blockedNanos.sum,
      discardedObjects.sum,
      discardFailures.sum,
      discardsGivenUp.sum
    )
}

object UploadMetrics {

  /**
   * Values of a moment. Counts are since the start.
   *
   * @param uploadsFailed
   *   files that are not known to be there
   * @param blockedNanos
   *   time that writers have waited for memory, in nanoseconds
   * @param discardFailures
   *   how often an object could not be deleted; it is tried again
   * @param discardsGivenUp
   *   objects that are left in storage, because too many could not be deleted
   */
  final case class Snapshot(
      uploadsStarted: Long,
      uploadsSucceeded: Long,
      uploadsFailed: Long,
      uploadedBytes: Long,
      blockedNanos: Long,
      discardedObjects: Long,
      discardFailures: Long,
      discardsGivenUp: Long
  )
}
