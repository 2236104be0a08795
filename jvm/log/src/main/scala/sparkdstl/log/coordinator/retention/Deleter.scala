// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.coordinator.view.RollbackPlan
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.StorageOperation.ReadTail

/** Deletes commit entries and data files from storage according to a plan. */
final class Deleter(storage: QueryStorage, entries: EntryReader) {
  import storage.location
  private implicit val executor: ExecutionContext = storage.runtime.executor

  def delete(files: Set[String], batches: Seq[Long]): Future[Unit] =
    storage.delete(files.toVector.sorted.map(location.file), batches.map(location.entry))

  /**
   * Deletes the entry of `batch` if it is the newest on storage, with those `requested` ones that [[RollbackPlan]] adds.
   * Returns the deleted entries.
   */
  def rollBack(batch: Long, requested: Set[Long]): Future[Vector[Long]] =
    storage.batches().flatMap { there =>
      if (!there.lastOption.contains(batch)) Future.successful(Vector.empty)
      else {
        val plan = RollbackPlan.of(there, requested)
        plan.unlessBegun.fold(Future.successful(false))(isBegun)
          .flatMap(begun => if (begun) Future.successful(Vector.empty) else oneByOne(plan.entries))
      }
    }

  /**
   * Deletes the entry of `batch` of a checkpoint without a run, for tools and for Spark's purges after the end of a query.
   * Returns the requests that remain.
   *
   * Without a run it is unknown which entries are still needed. So, as in a rollback, requested entries are only deleted from
   * the newest one down; the retention of the next run deletes the rest. Entries without segments are deleted at once.
   */
  def deleteUnowned(batch: Long, requested: Set[Long]): Future[Set[Long]] = entries.read(batch).flatMap {
    case EntryFound.Absent => Future.successful(requested - batch)
    case EntryFound.Logged(entry) if entry.index.entries.nonEmpty =>
      rollBack(batch, requested + batch).map(gone => requested + batch -- gone)
    case _ => delete(Set.empty, Seq(batch)).map(_ => requested - batch)
  }

  /** Deletes entries one after another, so that an interrupted deletion leaves a consistent checkpoint. */
  private def oneByOne(batches: Vector[Long]): Future[Vector[Long]] =
    batches.foldLeft(Future.unit)((before, batch) => before.flatMap(_ => delete(Set.empty, Seq(batch)))).map(_ =>
      batches
    )

  /** Whether the batch has an entry in `offsets/`: Spark has begun it. */
  private def isBegun(batch: Long): Future[Boolean] = {
    val path = new Path(location.root, s"offsets/$batch")
    storage.read(path, ReadTail(path, 1)).map(_.nonEmpty)
  }
}
