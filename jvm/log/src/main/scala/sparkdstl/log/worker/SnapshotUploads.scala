package sparkdstl.log.worker

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}

import sparkdstl.log.format.SegmentKey
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{FromDriver, SealedSegment, ToDriver}
import sparkdstl.log.upload.{LogUploader, PendingChunk}

/** What has become of a snapshot that was offered to the driver. */
sealed trait Offered

object Offered {

  /** A commit entry holds it. */
  case object Held extends Offered

  /**
   * It will not be in any commit entry.
   *
   * @param missing
   *   data files that it consists of, and that may not be there any more
   * @param isCertain
   *   whether the driver has never taken it. Else its files may be named, and must not be deleted
   */
  final case class Refused(reason: String, missing: Set[String], isCertain: Boolean) extends Offered

  /** The driver has no memory for the bytes that it carries itself: they are to be uploaded. */
  case object OverBudget extends Offered

  /** The run has ended. Nobody knows whether it was taken. */
  case object Ended extends Offered
}

/**
 * A worker's uploads of snapshots, in data files of their own: they may be needed for as long as the store does not change
 * what is in them. Uploads of the log go first.
 *
 * @param isLogBusy
 *   whether changes are being uploaded
 * @param timeoutMillis
 *   of an ask
 */
final class SnapshotUploads private[worker] (
    uploader: LogUploader[SegmentChunk],
    ask: AskUntilAnswered,
    isLogBusy: () => Boolean,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  import SnapshotUploads._
  private implicit val executor: ExecutionContext = runtime.executor

  @volatile private var closed = false

  /** Takes a chunk of a snapshot's zip or file. Completes when there is memory for it and the log does not need the storage. */
  def put(key: SegmentKey, bytes: Array[Byte]): Future[PendingChunk] =
    whenLogIsQuiet(GivesWayMillis).flatMap(_ => uploader.put(new SegmentChunk(key, bytes)))

  /**
   * Offers a snapshot for the next commit entry. Asks until one holds it, or never will: that may take as long as two
   * batches.
   */
  def offer(attempt: Long, segments: Vector[SealedSegment]): Future[Offered] =
    offerAgain(ToDriver.OfferSnapshot(attempt, segments), mayHaveBeenTaken = false, FirstDelayMillis)

  /** Bytes that wait for upload or are being uploaded. */
  def bytesInFlight: Long = uploader.bytesInFlight

  /** Takes nothing more. Completes when what is being uploaded has ended. */
  def close(): Future[Unit] = {
    closed = true
    uploader.close()
  }

  private def offerAgain(
      message: ToDriver.OfferSnapshot,
      mayHaveBeenTaken: Boolean,
      delayMillis: Long
  ): Future[Offered] =
    ask(message, timeoutMillis, () => !closed).flatMap { answer =>
      val wasTaken = answer.message == FromDriver.Noted
      val mayBeTaken = wasTaken || mayHaveBeenTaken || answer.silences > 0
      answer.message match {
        case FromDriver.SnapshotHeld => Future.successful(Offered.Held)
        case FromDriver.NotYet | FromDriver.Noted if closed => Future.successful(Offered.Ended)
        case FromDriver.NotYet | FromDriver.Noted =>
          after(delayMillis)
            .flatMap(_ => offerAgain(message, mayBeTaken, math.min(2 * delayMillis, LongestDelayMillis)))
        case FromDriver.OverBudget => Future.successful(Offered.OverBudget)
        case FromDriver.SnapshotRefused(reason, missing) =>
          Future.successful(Offered.Refused(reason, missing.toSet, isCertain = !mayBeTaken))
        case FromDriver.Superseded | FromDriver.NotCoordinated => Future.successful(Offered.Ended)
        case other => Future.failed(new IllegalStateException(s"the driver answered a snapshot's offer with $other"))
      }
    }

  private def whenLogIsQuiet(leftMillis: Long): Future[Unit] =
    if (closed || leftMillis <= 0 || !isLogBusy()) Future.unit
    else after(QuietCheckMillis).flatMap(_ => whenLogIsQuiet(leftMillis - QuietCheckMillis))

  private def after(millis: Long): Future[Unit] = {
    val due = Promise[Unit]()
    scala.util.Try(runtime.timer.schedule(millis)(() => due.trySuccess(()): Unit)) match {
      case Success(_) => due.future
      case Failure(error) => Future.failed(error)
    }
  }
}

private object SnapshotUploads {

  /** A batch that is short is committed by then. */
  private val FirstDelayMillis = 500L
  private val LongestDelayMillis = 5000L

  /** How long a chunk waits for changes that are being uploaded; a log that never rests must not go without snapshots. */
  private val GivesWayMillis = 10000L
  private val QuietCheckMillis = 50L
}
