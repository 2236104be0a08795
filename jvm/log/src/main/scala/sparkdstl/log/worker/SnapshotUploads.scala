// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.SegmentKey
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.upload.{Chunk, LogUploader, PendingChunk}

/**
 * A worker's uploads of snapshots. They have separate data files, because unchanged files of a snapshot may be needed for
 * long. Uploads of segments have priority: chunks wait while `isLogBusy`.
 */
final class SnapshotUploads private[worker] (
    uploader: LogUploader,
    isLogBusy: () => Boolean,
    runtime: ProtocolRuntime
) {

  /** The maximum time that a chunk waits for uploads of segments. Without it a busy log would never be snapshotted. */
  private final val GivesWayMillis = 10000L

  private final val QuietCheckMillis = 50L
  private implicit val executor: ExecutionContext = runtime.executor

  /** Uploads a chunk of a snapshot's zip or file. Completes when there is memory for it and no segment is being uploaded. */
  def put(key: SegmentKey, bytes: Array[Byte]): Future[PendingChunk] =
    whenLogIsQuiet(GivesWayMillis).flatMap(_ => uploader.put(Chunk(key, bytes)))

  def bytesInFlight: Long = uploader.bytesInFlight

  private def whenLogIsQuiet(leftMillis: Long): Future[Unit] =
    if (leftMillis <= 0 || !isLogBusy()) Future.unit
    else runtime.after(QuietCheckMillis).flatMap(_ => whenLogIsQuiet(leftMillis - QuietCheckMillis))
}
