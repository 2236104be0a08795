package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.coordinator.view.RollbackPlan
import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.StorageOperation.{ListObjects, ReadTail}

/** Deletes commit entries and data files from storage, as plans say. It decides nothing. */
final class Deleter(
    location: QueryLocation,
    checkpoint: StorageClient,
    log: StorageClient,
    entries: EntryReader,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  /** Data files first: an entry that is left can be asked for its files again. */
  def delete(files: Set[String], batches: Seq[Long]): Future[Unit] =
    for {
      _ <- deleteAll(log, files.toVector.sorted.map(location.file))
      _ <- deleteAll(checkpoint, batches.map(location.entry))
    } yield ()

  /**
   * Deletes the entry of `batch` if it is the newest on storage, with those that [[RollbackPlan]] adds.
   *
   * @param requested
   *   entries whose deletion was requested before
   * @return
   *   the deleted entries
   */
  def rollBack(batch: Long, requested: Set[Long]): Future[Vector[Long]] =
    committed().flatMap { there =>
      if (!there.lastOption.contains(batch)) Future.successful(Vector.empty)
      else {
        val plan = RollbackPlan.of(there, requested)
        plan.unlessBegun.fold(Future.successful(false))(isBegun)
          .flatMap(begun => if (begun) Future.successful(Vector.empty) else oneByOne(plan.entries))
      }
    }

  /**
   * Deletes the entry of `batch` of a checkpoint on which no run is at work, for tools and for what Spark does with a query that
   * has ended. Without a run it is not known which entries are still needed. So only what is requested from the newest entry
   * down is deleted, as in a rollback; everything else is left to the next run's retention. Entries without segments go at once.
   *
   * @return
   *   the requests that remain
   */
  def deleteUnowned(batch: Long, requested: Set[Long]): Future[Set[Long]] = entries.read(batch).flatMap {
    case EntryFound.Absent => Future.successful(requested - batch)
    case EntryFound.Logged(entry) if entry.index.entries.nonEmpty =>
      rollBack(batch, requested + batch).map(gone => requested + batch -- gone)
    case _ => delete(Set.empty, Seq(batch)).map(_ => requested - batch)
  }

  /** Batches of the entries that are on storage, in ascending order. */
  def committed(): Future[Vector[Long]] =
    checkpoint.run(ListObjects(location.commits), timeoutMillis).flatMap(_.asFuture).map(LogLayout.batchesIn)

  /** One after another, so that a stop in between leaves a checkpoint that is whole. */
  private def oneByOne(batches: Vector[Long]): Future[Vector[Long]] =
    batches.foldLeft(Future.unit)((before, batch) => before.flatMap(_ => delete(Set.empty, Seq(batch)))).map(_ =>
      batches
    )

  /** Whether Spark has begun the batch: whether it has an entry in `offsets/`. */
  private def isBegun(batch: Long): Future[Boolean] =
    checkpoint.run(ReadTail(new Path(new Path(location.root, "offsets"), batch.toString), 1), timeoutMillis)
      .flatMap(_.asFuture).map(_.nonEmpty)

  private def deleteAll(storage: StorageClient, paths: Seq[Path]): Future[Unit] =
    if (paths.isEmpty) Future.unit else storage.delete(paths, timeoutMillis).flatMap(_.asFuture)
}
