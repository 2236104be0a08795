package sparkdstl.log.read

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.format.SnapshotList

/**
 * Finds the snapshots that commit entries hold. Each entry with a log lists all that existed when it was written, or
 * continues the list of one before it; so one or two entries list all.
 */
object SnapshotLists {

  /**
   * The list of all snapshots in entries that exist, at most one of each store and version and id.
   *
   * @param existing batches that have an entry, in ascending order
   * @param read
   *   what there is of a batch. An entry that is damaged is passed over: the one below it lists all but its own
   */
  def of(existing: Vector[Long])(read: Long => Future[EntryFound])(implicit
      executor: ExecutionContext
  ): Future[SnapshotList] = {
    val exists = existing.toSet
    listed(existing)(read).map(found => found.copy(held = found.held.filter(snapshot => exists(snapshot.batch))))
  }

  private def listed(existing: Vector[Long])(read: Long => Future[EntryFound])(implicit
      executor: ExecutionContext
  ): Future[SnapshotList] = existing.lastOption match {
    case None => Future.successful(SnapshotList(-1L, Long.MaxValue, Vector.empty))
    case Some(newest) =>
      read(newest).recover { case _: DamagedLogException => EntryFound.Absent }.map {
        case EntryFound.Logged(entry) => entry.index.snapshots
        case EntryFound.Plain | EntryFound.Absent => None
      }.flatMap {
        case Some(list) if list.complete == newest => Future.successful(list)
        case Some(list) =>
          listed(existing.takeWhile(_ <= list.complete))(read).map(before => list.copy(held = before.held ++ list.held))
        // Nothing lists anything here: its own version may be a plain file.
        case None => listed(existing.init)(read).map(_.copy(plainUpTo = newest + 1))
      }
  }
}
