package sparkdstl.log.read

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.format.HeldSnapshot

/**
 * The snapshots that commit entries hold.
 *
 * @param plainUpTo
 *   up to this version stores may have plain files; 0 if there never were any
 * @param held
 *   at most one of each store and version and id
 */
final case class StandingSnapshots(plainUpTo: Long, held: Vector[HeldSnapshot])

/**
 * Finds the snapshots that commit entries hold. Each entry with a log tells of all that stood when it was written, or
 * continues the list of one before it; so one or two entries tell of all.
 */
object StandingSnapshots {

  /**
   * @param existing
   *   batches that have an entry, in ascending order
   * @param read
   *   what there is of a batch. An entry that is damaged is passed over: the one below it tells of all but its own
   */
  def among(existing: Vector[Long])(read: Long => Future[EntryFound])(implicit
      executor: ExecutionContext
  ): Future[StandingSnapshots] = {
    val stands = existing.toSet
    told(existing)(read).map(found => found.copy(held = found.held.filter(snapshot => stands(snapshot.batch))))
  }

  private def told(existing: Vector[Long])(read: Long => Future[EntryFound])(implicit
      executor: ExecutionContext
  ): Future[StandingSnapshots] = existing.lastOption match {
    case None => Future.successful(StandingSnapshots(Long.MaxValue, Vector.empty))
    case Some(newest) =>
      read(newest).recover { case _: DamagedLogException => EntryFound.Absent }.map {
        case EntryFound.Logged(entry) => entry.index.snapshots
        case EntryFound.Plain | EntryFound.Absent => None
      }.flatMap {
        case Some(list) if list.complete == newest =>
          Future.successful(StandingSnapshots(list.plainUpTo, list.held))
        case Some(list) => told(existing.takeWhile(_ <= list.complete))(read).map { before =>
            StandingSnapshots(list.plainUpTo, before.held ++ list.held)
          }
        // Nothing that knows: its own version may be a plain file.
        case None => told(existing.init)(read).map(_.copy(plainUpTo = newest + 1))
      }
  }
}
