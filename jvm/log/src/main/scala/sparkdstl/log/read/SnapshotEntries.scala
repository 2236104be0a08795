package sparkdstl.log.read

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.format.{LogFileIndex, SegmentKind}

/**
 * Which commit entries hold snapshots. Each entry with a log names those before it that stand, so that the newest one tells of
 * all.
 */
object SnapshotEntries {

  /**
   * Which of these batches have an entry with snapshots.
   *
   * @param existing
   *   batches that have an entry, in ascending order
   */
  def among(existing: Vector[Long])(read: Long => Future[EntryFound])(implicit
      executor: ExecutionContext
  ): Future[Vector[Long]] = existing.lastOption match {
    case None => Future.successful(Vector.empty)
    case Some(newest) =>
      read(newest).recover { case _: DamagedLogException => EntryFound.Absent }.flatMap {
        case EntryFound.Logged(entry) => Future.successful(of(entry.batch, entry.index).filter(existing.toSet))
        // Nothing that holds state; or it cannot tell, and the one before knows all but its own.
        case EntryFound.Plain | EntryFound.Absent => among(existing.init)(read)
      }
  }

  /** The batches that an entry's index tells of, its own if it holds snapshots included. */
  def of(batch: Long, index: LogFileIndex): Vector[Long] =
    index.snapshots ++ Option.when(storesOf(index).nonEmpty)(batch)

  /** Directories of the stores of which an entry holds snapshots. */
  def storesOf(index: LogFileIndex): Set[String] =
    index.entries.iterator.map(_.key).filter(_.kind == SegmentKind.Snapshot).map(_.storeDirectory).toSet
}
