// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.format.SnapshotList

/**
 * Finds the snapshots in commit entries. An entry with a log lists all snapshots that existed when it was written, or continues
 * the list of an earlier entry. So one or two entries list all.
 */
object SnapshotLists {

  /**
   * The list of all snapshots in `existing` entries, which are in ascending order: at most one per store, version and id. A
   * damaged entry is skipped: the entry below lists all snapshots but those of the damaged one.
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
            // The entry has no list: its version may have plain files.
            case None => listed(existing.init).map(_.copy(plainUpTo = newest + 1))
          }
    }
    val exists = existing.toSet
    listed(existing).map(found => found.copy(held = found.held.filter(snapshot => exists(snapshot.batch))))
  }
}
