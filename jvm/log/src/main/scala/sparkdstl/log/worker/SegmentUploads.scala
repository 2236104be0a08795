package sparkdstl.log.worker

import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success}

import sparkdstl.log.format.{SegmentKey, SegmentPart}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{SealedPart, ToDriver}
import sparkdstl.log.upload.{Chunk, LogUploader, PendingChunk}

/** A chunk of a segment, as the uploader carries it. */
final class SegmentChunk(val key: SegmentKey, val bytes: Array[Byte]) extends Chunk {
  override def label: String = key.relativePath
  override def size: Int = bytes.length
}

/**
 * A worker's uploads, and word of them to the driver, in as few messages as it takes.
 *
 * @param ask
 *   brings a message to the driver
 */
private[worker] final class SegmentUploads(
    uploader: LogUploader[SegmentChunk],
    ask: AskUntilAnswered,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  private val tickets = new AtomicLong

  // Guarded by this: what is still to be told, and whether a message is on its way.
  private val untold = mutable.ArrayBuffer.empty[(Long, Either[String, SegmentPart])]
  private var telling = false

  /** Takes a chunk; completes when there is memory for it. */
  def put(key: SegmentKey, bytes: Array[Byte]): Future[Upload] =
    uploader.put(new SegmentChunk(key, bytes)).map(new Upload(tickets.incrementAndGet(), bytes.length.toLong, _))

  def flush(): Unit = uploader.flush()

  /** One chunk on its way. */
  final class Upload(ticket: Long, length: Long, pending: PendingChunk) {
    @volatile private var isAwaited = false

    /** As a seal names it. Fails if the upload has failed already. */
    def part: SealedPart = {
      val ended = pending.location.value
      isAwaited = ended.isEmpty
      ended match {
        case Some(Success(at)) => SealedPart.Stored(SegmentPart(Some(at.file), at.offset, at.length, at.crc))
        case Some(Failure(error)) => throw error
        case None => SealedPart.Pending(ticket, length)
      }
    }

    /** From now on the driver learns how it ends, if the seal did not say. To be called once the driver has the seal. */
    def report(): Unit = if (isAwaited) pending.location.onComplete {
      case Success(at) => tell(ticket -> Right(SegmentPart(Some(at.file), at.offset, at.length, at.crc)))
      case Failure(error) => tell(ticket -> Left(String.valueOf(error.getMessage)))
    }

    /** Nobody wants the chunk, and nothing that may be committed names it. */
    def discard(): Unit = pending.discard()
  }

  private def tell(result: (Long, Either[String, SegmentPart])): Unit = {
    synchronized(untold += result): Unit
    tellNext()
  }

  private def tellNext(): Unit = {
    val message = synchronized {
      val ready = !telling && untold.nonEmpty
      if (ready) telling = true
      Option.when(ready) {
        val all = untold.toVector
        untold.clear()
        all
      }
    }
    message.foreach { results =>
      ask(ToDriver.Uploaded(results), timeoutMillis).onComplete { _ =>
        synchronized { telling = false }
        tellNext()
      }
    }
  }
}
