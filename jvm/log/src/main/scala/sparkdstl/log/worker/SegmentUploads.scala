// SPDX-License-Identifier: Apache-2.0
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

/** A worker's uploads of segments, and their reports to the driver, in as few messages as possible. */
private[worker] final class SegmentUploads(
    uploader: LogUploader,
    ask: AskUntilAnswered,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private val logger = LoggerFactory.getLogger(classOf[SegmentUploads])

  /** The delay after an ask that was repeated until its timeout. */
  private final val SendAgainMillis = 1000L
  private implicit val executor: ExecutionContext = runtime.executor

  // Starts at a random number, because the driver may still have tickets of an earlier instance.
  private val tickets = new AtomicLong(runtime.random.nextUuid().getMostSignificantBits >>> 2)

  // Guarded by this: reports to be sent, and whether a message is under way.
  private val unsent = mutable.ArrayBuffer.empty[Report]
  private var sending = false

  // Reports that the driver has not answered yet.
  private val reports = new AtomicInteger

  def put(key: SegmentKey, bytes: Array[Byte]): Future[Upload] =
    uploader.put(Chunk(key, bytes)).map(new Upload(tickets.incrementAndGet(), bytes.length.toLong, _))

  def flush(): Unit = uploader.flush()
  def bytesInFlight: Long = uploader.bytesInFlight

  /** Whether an upload is under way or not yet reported to the driver. */
  def isBusy: Boolean = bytesInFlight > 0 || reports.get > 0

  final class Upload(ticket: Long, length: Long, pending: PendingChunk) {
    @volatile private var isAwaited = false
    @volatile private var isPlaced = false

    /** The chunk's part in a seal. Throws if the upload has failed. */
    def part: SealedPart = {
      val ended = pending.location.value
      // Stays true if a later seal names the place: the driver may have accepted an earlier seal.
      isAwaited ||= ended.isEmpty
      ended match {
        case Some(Success(at)) =>
          isPlaced = true
          SealedPart.Stored(at)
        case Some(Failure(error)) => throw error
        case None => SealedPart.Pending(ticket, length)
      }
    }

    /** Reports its end to the driver, unless all seals named its place. Called after the driver has accepted the seal. */
    def report(): Unit = if (isAwaited) {
      reports.incrementAndGet(): Unit
      pending.location.onComplete { ended =>
        val result = ended.fold(error => Left(String.valueOf(error.getMessage)), Right(_))
        SegmentUploads.this.synchronized(unsent += Report(ticket, result, this)): Unit
        sendNext()
      }
    }

    /** Discards the chunk. No seal that may be committed may name it. */
    def discard(): Unit = pending.discard()

    /**
     * Discards the chunk of an unknown ticket. If a seal named its place, the chunk stays: the driver may have accepted that
     * seal and not the earlier one with the ticket.
     */
    def discardUnlessPlaced(): Unit = if (!isPlaced) discard()
  }

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
          // The barrier may wait for these reports: they are sent again.
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
    catch { case NonFatal(_) => logger.warn("Ended uploads are no longer reported to the driver", error) }
}
