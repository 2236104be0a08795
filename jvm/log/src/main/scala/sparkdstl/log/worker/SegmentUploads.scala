package sparkdstl.log.worker

import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.format.{SegmentKey, SegmentPart}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{FromDriver, SealedPart, ToDriver}
import sparkdstl.log.upload.{Chunk, LogUploader, PendingChunk}

/** A worker's uploads, and the reports of them to the driver, in as few messages as possible. */
private[worker] final class SegmentUploads(
    uploader: LogUploader,
    ask: AskUntilAnswered,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private val logger = LoggerFactory.getLogger(classOf[SegmentUploads])

  /** The ask itself was repeated for long: no hurry. */
  private final val SendAgainMillis = 1000L
  private implicit val executor: ExecutionContext = runtime.executor

  // From an arbitrary number on: the driver may still know tickets of an earlier instance.
  private val tickets = new AtomicLong(runtime.random.nextUuid().getMostSignificantBits >>> 2)

  // Guarded by this: reports that are still to be sent, and whether a message is on its way.
  private val unsent = mutable.ArrayBuffer.empty[Report]
  private var sending = false

  // Reports that the driver has not answered yet.
  private val reports = new AtomicInteger

  /** Takes a chunk; completes when there is memory for it. */
  def put(key: SegmentKey, bytes: Array[Byte]): Future[Upload] =
    uploader.put(Chunk(key, bytes)).map(new Upload(tickets.incrementAndGet(), bytes.length.toLong, _))

  def flush(): Unit = uploader.flush()

  /** Bytes that wait for upload or are being uploaded. */
  def bytesInFlight: Long = uploader.bytesInFlight

  /** Whether an upload is under way, or has ended and was not reported to the driver. */
  def isBusy: Boolean = bytesInFlight > 0 || reports.get > 0

  def close(): Future[Unit] = uploader.close()

  /** One chunk on its way. */
  final class Upload(ticket: Long, length: Long, pending: PendingChunk) {
    @volatile private var isAwaited = false
    @volatile private var isPlaced = false

    /** As a seal names it. Fails if the upload has failed already. */
    def part: SealedPart = {
      val ended = pending.location.value
      // Also if a later seal names its place: the driver may have taken an earlier one.
      isAwaited ||= ended.isEmpty
      ended match {
        case Some(Success(at)) =>
          isPlaced = true
          SealedPart.Stored(at)
        case Some(Failure(error)) => throw error
        case None => SealedPart.Pending(ticket, length)
      }
    }

    /** Reports its end to the driver, unless the seal named its place. To be called once the driver has the seal. */
    def report(): Unit = if (isAwaited) {
      reports.incrementAndGet(): Unit
      pending.location.onComplete { ended =>
        val result = ended.fold(error => Left(String.valueOf(error.getMessage)), Right(_))
        SegmentUploads.this.synchronized(unsent += Report(ticket, result, this)): Unit
        sendNext()
      }
    }

    /** The chunk is not wanted, and no seal that may be committed names it. */
    def discard(): Unit = pending.discard()

    /**
     * The driver does not know the ticket. If a seal names the chunk by its place, the driver may have accepted that seal and
     * not an earlier one that named the ticket: the chunk stays.
     */
    def discardUnlessPlaced(): Unit = if (!isPlaced) discard()
  }

  /** How an upload has ended. */
  private case class Report(ticket: Long, result: Either[String, SegmentPart], upload: Upload)

  private def sendNext(): Unit = {
    val message = synchronized {
      val ready = !sending && unsent.nonEmpty
      if (ready) sending = true
      Option.when(ready) {
        val all = unsent.toVector
        unsent.clear()
        all
      }
    }
    message.foreach { sent =>
      ask(ToDriver.Uploaded(sent.map(report => report.ticket -> report.result)), timeoutMillis).onComplete { answer =>
        synchronized {
          sending = false
          // The barrier may wait for them: they are sent again, with what has come meanwhile.
          if (answer.isFailure) unsent.prependAll(sent): Unit
        }
        answer match {
          case Success(reply) =>
            reports.addAndGet(-sent.size): Unit
            discardUnwanted(sent, reply.message)
            sendNext()
          case Failure(error) => sendAgainLater(error)
        }
      }
    }
  }

  private def discardUnwanted(sent: Vector[Report], answer: FromDriver): Unit = answer match {
    case FromDriver.Unwanted(tickets) =>
      val unwanted = tickets.toSet
      sent.foreach(report => if (unwanted(report.ticket)) report.upload.discardUnlessPlaced())
    case _ =>
  }

  private def sendAgainLater(error: Throwable): Unit =
    try runtime.timer.schedule(SendAgainMillis)(() => sendNext()): Unit
    catch { case NonFatal(_) => logger.warn("The ends of uploads are no longer reported to the driver", error) }
}
