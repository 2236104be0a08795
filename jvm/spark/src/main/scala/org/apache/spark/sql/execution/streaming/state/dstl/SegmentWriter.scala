package org.apache.spark.sql.execution.streaming.state.dstl

import scala.collection.mutable.ArrayBuffer

import sparkdstl.log.FailPoints
import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.SegmentKey

/**
 * Brings one segment into the log: chunks go to the uploader while the task still runs, the rest with the seal.
 *
 * @param uploads     where chunks go that are too large to be stored in the batch log
 * @param coordinator who takes the seal
 */
private[dstl] final class SegmentWriter(
    key: SegmentKey,
    options: LogOptions,
    uploads: SegmentUploads,
    coordinator: CoordinatorClient,
    activity: StoreActivity,
    run: java.util.UUID,
    executor: String,
    nanoTime: () => Long
) {

  private val uploading = ArrayBuffer.empty[SegmentUpload]

  /** Chunks are handed over at this size, in bytes. */
  val chunkSize: Int = options.preemptivePersistThreshold.toInt

  /** Takes a full chunk. Waits while the uploader has more in flight than it may. */
  def add(chunk: Array[Byte]): Unit = upload(chunk)

  /**
   * Promises the segment, of which `rest` are the last bytes. When this returns the driver knows of it; when it throws,
   * nothing is promised and the task fails.
   */
  def seal(rest: Array[Byte]): Unit = {
    FailPoints.hit("executor.mid-task", key.batch)
    val started = nanoTime()
    try
      if (rest.length <= options.inlineMaxSegmentSize) sealInline(rest)
      else sealUploaded(rest)
    catch {
      case e: Throwable =>
        abort()
        throw e
    } finally activity.sealNanos.addAndGet(nanoTime() - started): Unit
    FailPoints.hit("executor.after-seal", key.batch)
  }

  /** Gives up the segment; what was uploaded of it is discarded. */
  def abort(): Unit = uploading.foreach(_.discard())

  private def sealInline(rest: Array[Byte]): Unit = {
    val inline = if (rest.isEmpty) Vector.empty else Vector(SealedPart.Inline(rest))
    coordinator.seal(SealRequest(executor, key, uploadedParts ++ inline)) match {
      case SealReply.Accepted =>
        activity.inlineBytes.addAndGet(rest.length.toLong)
        reportUploads()
      case SealReply.OverBudget => sealUploaded(rest)
      case SealReply.Refused(reason) => throw DstlErrors.sealRefused(key, run, reason)
    }
  }

  private def sealUploaded(rest: Array[Byte]): Unit = {
    upload(rest)
    uploads.announce()
    coordinator.seal(SealRequest(executor, key, uploadedParts)) match {
      case SealReply.Accepted => reportUploads()
      case SealReply.OverBudget =>
        throw DstlErrors.sealRefused(key, run, "it was found over budget without inline bytes")
      case SealReply.Refused(reason) => throw DstlErrors.sealRefused(key, run, reason)
    }
  }

  private def upload(bytes: Array[Byte]): Unit = {
    val started = nanoTime()
    uploading += uploads.put(key, bytes)
    activity.blockedNanos.addAndGet(nanoTime() - started)
    activity.uploadedBytes.addAndGet(bytes.length.toLong): Unit
  }

  private def uploadedParts: Vector[SealedPart] = uploading.iterator.map(_.part).toVector

  /** From here on the driver learns how the uploads end, also those that had ended before. */
  private def reportUploads(): Unit = uploading.foreach(_.reportTo(coordinator))
}
