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

  // Guarded by this.
  private val asked = mutable.HashSet.empty[Long]

  /** Completes when the entry of `batch` is gone, or is known to be left for later. */
  def delete(batch: Long): Future[Unit] = {
    synchronized(asked += batch): Unit
    for {
      found <- entries.read(batch)
      batches <- checkpoint.list(location.commits, timeoutMillis).flatMap(_.asFuture)
        .map(_.flatMap(o => LogLayout.parseBatch(o.path.getName)).sorted.toVector)
      unneeded <- found match {
        case EntryFound.Logged(entry) if entry.index.entries.nonEmpty => goingBack(batch, batches)
        case EntryFound.Absent =>
          synchronized(asked -= batch)
          Future.successful(Vector.empty)
        case _ => Future.successful(Vector(batch))
      }
      _ <- deleteAll(unneeded)
    } yield ()
  }

  private def goingBack(batch: Long, batches: Vector[Long]): Future[Vector[Long]] =
    if (!batches.lastOption.contains(batch)) Future.successful(Vector.empty)
    else {
      val below = synchronized(batches.reverse.drop(1).takeWhile(asked))
      if (below.size < batches.size - 1) Future.successful(batch +: below)
      // A purge of everything. What runs again is the newest batch that was begun, on the state before it.
      else BegunBatches.isBegun(location, checkpoint, batch + 1, timeoutMillis, runtime)
        .map(isBegun => if (isBegun) Vector.empty else Vector(batch))
    }

  private def deleteAll(batches: Vector[Long]): Future[Unit] =
    batches.foldLeft(Future.unit) { (before, batch) =>
      before.flatMap(_ => checkpoint.delete(Seq(location.entry(batch)), timeoutMillis)).flatMap(_.asFuture).map { _ =>
        synchronized(asked -= batch): Unit
      }
    }
}
