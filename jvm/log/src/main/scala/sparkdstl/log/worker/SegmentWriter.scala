// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.SegmentKey
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{SealedPart, SealedSegment}

/**
 * A segment that a task writes: chunks of `chunkSize` bytes are uploaded at once, the rest waits for the task's seal. Used by
 * one thread at a time.
 */
final class SegmentWriter private[worker] (
    val key: SegmentKey,
    base: Option[Long],
    val chunkSize: Int,
    uploads: () => SegmentUploads,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  // Guarded by this.
  private val uploading = mutable.ArrayBuffer.empty[SegmentUploads#Upload]
  private var rest = Array.emptyByteArray
  private var discarded = false
  private var waited = 0L

  /** Uploads a full chunk. Completes when there is memory for it; the caller waits for that. */
  def add(chunk: Array[Byte]): Future[Unit] = {
    val started = runtime.timer.nowNanos
    uploads().put(key, chunk).map { upload =>
      val late = synchronized {
        waited += runtime.timer.nowNanos - started
        if (!discarded) uploading += upload
        discarded
      }
      if (late) upload.discard()
    }
  }

  def end(last: Array[Byte]): Unit = synchronized { rest = last }

  /** The time that chunks have waited for memory. */
  private[worker] def blockedNanos: Long = synchronized(waited)

  /** Bytes that were not passed to the uploader. */
  private[worker] def restLength: Int = synchronized(rest.length)

  private[worker] def uploadRest(): Future[Unit] = {
    val bytes = synchronized {
      val bytes = rest
      rest = Array.emptyByteArray
      bytes
    }
    if (bytes.isEmpty) Future.unit else add(bytes)
  }

  /** The segment for the seal. Throws if an upload has failed. */
  private[worker] def sealedSegment: SealedSegment = synchronized {
    val inline = if (rest.isEmpty) Vector.empty else Vector(SealedPart.Inline(rest))
    SealedSegment(key, base, uploading.iterator.map(_.part).toVector ++ inline)
  }

  private[worker] def report(): Unit = synchronized(uploading.toVector).foreach(_.report())

  /** Discards the segment. No seal that may be committed may name it. */
  private[worker] def discard(): Unit = {
    val unwanted = synchronized {
      discarded = true
      rest = Array.emptyByteArray
      val all = uploading.toVector
      uploading.clear()
      all
    }
    unwanted.foreach(_.discard())
  }
}
