package sparkdstl.log.worker

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.SegmentKey
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.upload.{Chunk, LogUploader, PendingChunk}

/**
 * A worker's uploads of snapshots, in data files of their own: they may be needed for as long as the store does not change
 * what is in them. Uploads of the log go first.
 *
 * @param isLogBusy whether changes are being uploaded
 */
final class SnapshotUploads private[worker] (
    uploader: LogUploader,
    isLogBusy: () => Boolean,
    runtime: ProtocolRuntime
) {

  /** How long a chunk waits for changes that are being uploaded; a log that never rests must not go without snapshots. */
  private final val GivesWayMillis = 10000L
  private final val QuietCheckMillis = 50L
  private implicit val executor: ExecutionContext = runtime.executor

  @volatile private var closed = false

  /** Takes a chunk of a snapshot's zip or file. Completes when there is memory for it and the log does not need the storage. */
  def put(key: SegmentKey, bytes: Array[Byte]): Future[PendingChunk] =
    whenLogIsQuiet(GivesWayMillis).flatMap(_ => uploader.put(Chunk(key, bytes)))

  /** Bytes that wait for upload or are being uploaded. */
  def bytesInFlight: Long = uploader.bytesInFlight

  /** Takes nothing more. Completes when what is being uploaded has ended. */
  def close(): Future[Unit] = {
    closed = true
    uploader.close()
  }

  private def whenLogIsQuiet(leftMillis: Long): Future[Unit] =
    if (closed || leftMillis <= 0 || !isLogBusy()) Future.unit
    else runtime.after(QuietCheckMillis).flatMap(_ => whenLogIsQuiet(leftMillis - QuietCheckMillis))
}
