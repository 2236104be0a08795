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

/**
 * A worker's uploads, and word of them to the driver, in as few messages as it takes.
 *
 * @param ask
 *   brings a message to the driver
 */
private[worker] final class SegmentUploads(
    uploader: LogUploader,
    ask: AskUntilAnswered,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  import SegmentUploads._
  private implicit val executor: ExecutionContext = runtime.executor

  // From an arbitrary number on: the driver may still know tickets of an earlier one of these.
  private val tickets = new AtomicLong(runtime.random.nextUuid().getMostSignificantBits >>> 2)

  // Guarded by this: what is still to be told, and whether a message is on its way.
  private val untold = mutable.ArrayBuffer.empty[Report]
  private var telling = false

  // What will be told, and the driver has not answered yet.
  private val reports = new AtomicInteger

  /** Takes a chunk; completes when there is memory for it. */
  def put(key: SegmentKey, bytes: Array[Byte]): Future[Upload] =
    uploader.put(Chunk(key, bytes)).map(new Upload(tickets.incrementAndGet(), bytes.length.toLong, _))

  def flush(): Unit = uploader.flush()

  /** Whether anything is being uploaded, or was and the driver does not know yet. */
  def isBusy: Boolean = uploader.bytesInFlight > 0 || reports.get > 0

  /** One chunk on its way. */
  final class Upload(ticket: Long, length: Long, pending: PendingChunk) {
    @volatile private var isAwaited = false
    @volatile private var isPlaced = false

    /** As a seal names it. Fails if the upload has failed already. */
    def part: SealedPart = {
      val ended = pending.location.value
      // Also if a later seal says where it is: the driver may have taken an earlier one.
      isAwaited ||= ended.isEmpty
      ended match {
        case Some(Success(at)) =>
          isPlaced = true
          SealedPart.Stored(at)
        case Some(Failure(error)) => throw error
        case None => SealedPart.Pending(ticket, length)
      }
    }

    /** From now on the driver learns how it ends, if the seal did not say. To be called once the driver has the seal. */
    def report(): Unit = if (isAwaited) {
      reports.incrementAndGet(): Unit
      pending.location.onComplete {
        case Success(at) => tell(Right(at))
        case Failure(error) => tell(Left(String.valueOf(error.getMessage)))
      }
    }

    private def tell(result: Either[String, SegmentPart]): Unit = {
      SegmentUploads.this.synchronized(untold += Report(ticket, result, this)): Unit
      tellNext()
    }

    /** Nobody wants the chunk, and nothing that may be committed names it. */
    def discard(): Unit = pending.discard()

    /**
     * The driver does not know the ticket. If a seal names the chunk by its place, the driver may have accepted that seal and
     * not an earlier one that named the ticket: the chunk stays.
     */
    def discardUnlessPlaced(): Unit = if (!isPlaced) discard()
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
    message.foreach { told =>
      ask(ToDriver.Uploaded(told.map(report => report.ticket -> report.result)), timeoutMillis).onComplete {
        answer =>
          synchronized {
            telling = false
            // The barrier may be waiting for them: they are told again, together with what has come meanwhile.
            if (answer.isFailure) untold.prependAll(told): Unit
          }
          answer match {
            case Success(heard) =>
              reports.addAndGet(-told.size): Unit
              discardUnwanted(told, heard.message)
              tellNext()
            case Failure(error) => tellAgainLater(error)
          }
      }
    }
  }

  private def discardUnwanted(told: Vector[Report], answer: FromDriver): Unit = answer match {
    case FromDriver.Unwanted(tickets) =>
      val unwanted = tickets.toSet
      told.foreach(report => if (unwanted(report.ticket)) report.upload.discardUnlessPlaced())
    case _ =>
  }

  private def tellAgainLater(error: Throwable): Unit =
    try runtime.timer.schedule(TellAgainMillis)(() => tellNext()): Unit
    catch { case NonFatal(_) => logger.warn("The driver is not told any more how uploads have ended", error) }
}

private object SegmentUploads {
  private val logger = LoggerFactory.getLogger(classOf[SegmentUploads])

  /** An ask has gone on for long before it is given up: no hurry. */
  private val TellAgainMillis = 1000L

  /** How an upload has ended. */
  private final case class Report(ticket: Long, result: Either[String, SegmentPart], upload: SegmentUploads#Upload)
}
