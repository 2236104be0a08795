package sparkdstl.log.coordinator.retention

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Deletes commit entries of a checkpoint on which no run of this driver is at work, for tools and for what Spark does with a
 * query that has ended. Without a run nobody knows which entries are still needed. So only what is asked from the newest
 * entry down is deleted, as a user does who goes back; everything else is left to the next run's retention. Entries
 * without a log go when asked.
 */
final class UnownedDeletion(
    location: QueryLocation,
    checkpoint: StorageClient,
    entries: EntryReader,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  private val goingBack = new GoingBack(location, checkpoint, timeoutMillis, runtime)

  // Guarded by this.
  private val asked = mutable.HashSet.empty[Long]

  /** Completes when the entry of `batch` is gone, or is known to be left for later. */
  def delete(batch: Long): Future[Unit] = {
    synchronized(asked += batch): Unit
    for {
      found <- entries.read(batch)
      batches <- checkpoint.list(location.commits, timeoutMillis).flatMap(_.asFuture)
        .map(LogLayout.batchesIn)
      unneeded <- found match {
        case EntryFound.Logged(entry) if entry.index.entries.nonEmpty =>
          if (!batches.lastOption.contains(batch)) Future.successful(Vector.empty)
          else goingBack.entries(batches, synchronized(asked.toSet))
        case EntryFound.Absent =>
          synchronized(asked -= batch)
          Future.successful(Vector.empty)
        case _ => Future.successful(Vector(batch))
      }
      _ <- goingBack.delete(unneeded)(gone => synchronized(asked -= gone): Unit)
    } yield ()
  }
}
