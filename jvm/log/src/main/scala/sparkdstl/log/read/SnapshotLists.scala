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
   * @param read reads an entry. A damaged one is skipped: the one below it lists all snapshots but those of the damaged one
   */
  def of(existing: Vector[Long])(read: Long => Future[EntryFound])(implicit
      executor: ExecutionContext
  ): Future[SnapshotList] = {
    def listed(existing: Vector[Long]): Future[SnapshotList] = existing.lastOption match {
      case None => Future.successful(SnapshotList(-1L, Long.MaxValue, Vector.empty))
      case Some(newest) =>
        read(newest).recover { case _: DamagedLogException => EntryFound.Absent }
          .map(_.logged.flatMap(_.index.snapshots)).flatMap {
            case Some(list) if list.complete == newest => Future.successful(list)
            case Some(list) =>
              listed(existing.takeWhile(_ <= list.complete)).map(before => list.copy(held = before.held ++ list.held))
            // Without a list: its own version may be a plain file.
            case None => listed(existing.init).map(_.copy(plainUpTo = newest + 1))
          }
    }
    val exists = existing.toSet
    listed(existing).map(found => found.copy(held = found.held.filter(snapshot => exists(snapshot.batch))))
  }
}
