// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import sparkdstl.log.metrics.MetricGroup

/** Counts an executor's data files. Requests are counted by [[sparkdstl.log.request.RequestMetrics]]. */
final class UploadMetrics extends MetricGroup("uploads") {
  private[upload] val started = counter("started")
  private[upload] val succeeded = counter("succeeded")

  /** Files whose upload failed or has an unknown outcome. */
  private[upload] val failed = counter("failed")
  private[upload] val bytes = counter("bytes")

  /** The time that chunks have waited for memory. */
  private[upload] val blockedNanos = nanosCounter("blockedMs")
  private[upload] val discardedObjects = counter("discardedObjects")

  /** Deletions that failed, and are retried. */
  private[upload] val discardFailures = counter("discardFailures")

  /** Objects that stay on storage, because too many deletions have failed. */
  private[upload] val discardsGivenUp = counter("discardsGivenUp")
}
