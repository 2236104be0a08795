package sparkdstl.log.worker

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.SegmentKey
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{SealedPart, SealedSegment}

/**
 * One segment that a task is writing: full chunks go to the uploader at once, the rest waits for the task's seal.
 *
 * Used by one thread at a time.
 *
 * @param chunkSize in bytes; chunks are handed over at this size
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

  /** Takes a full chunk. Completes when there is memory for it: the caller waits before it makes more. */
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

  /** The segment ends with these bytes. */
  def end(last: Array[Byte]): Unit = synchronized { rest = last }

  /** For how long chunks have waited for memory, in nanoseconds. */
  private[worker] def blockedNanos: Long = synchronized(waited)

  /** Bytes that are not with the uploader. */
  private[worker] def restLength: Int = synchronized(rest.length)

  /** Hands the rest to the uploader as well. */
  private[worker] def uploadRest(): Future[Unit] = {
    val bytes = synchronized {
      val bytes = rest
      rest = Array.emptyByteArray
      bytes
    }
    if (bytes.isEmpty) Future.unit else add(bytes)
  }

  /** The segment for the seal. Fails if an upload has failed already. */
  private[worker] def sealedSegment: SealedSegment = synchronized {
    val inline = if (rest.isEmpty) Vector.empty else Vector(SealedPart.Inline(rest))
    SealedSegment(key, base, uploading.iterator.map(_.part).toVector ++ inline)
  }

  private[worker] def report(): Unit = synchronized(uploading.toVector).foreach(_.report())

  /** Nothing of it is wanted, and nothing that may be committed names it. */
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
