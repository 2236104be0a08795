package org.apache.spark.sql.execution.streaming.state.dstl

import sparkdstl.log.format.SegmentKey

/** A chunk of a segment on its way into a data file. */
private[dstl] trait SegmentUpload {

  /**
   * As the seal names it: its place if it is durable already, else the ticket under which that will be reported.
   *
   * @throws java.io.IOException if the upload has failed
   */
  def part: SealedPart

  /** Tells the driver, once, how the upload ends. */
  def reportTo(coordinator: CoordinatorClient): Unit

  /** The chunk is not wanted any more. */
  def discard(): Unit
}

/** Where segments' chunks go that are too large for the batch log. */
private[dstl] trait SegmentUploads {

  /** Takes a chunk; waits while too many bytes are in flight. */
  def put(key: SegmentKey, bytes: Array[Byte]): SegmentUpload

  /** Makes sure that the driver can ask this executor to flush. To be called before a seal that names tickets. */
  def announce(): Unit
}
