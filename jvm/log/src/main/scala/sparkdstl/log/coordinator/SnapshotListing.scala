// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.concurrent.{ExecutionContext, Future, Promise}

import sparkdstl.log.coordinator.view.GuardedState
import sparkdstl.log.read.{EntryFound, EntryReader, SnapshotLists}

/**
 * Adds the snapshots that existed at the start of the run to the view: on the first call, and again after a failure. `newest`
 * is the newest entry at the start, which was read already.
 */
private[coordinator] final class SnapshotListing(state: GuardedState, entries: EntryReader, newest: EntryFound)(implicit
    executor: ExecutionContext
) {

  /** Completes when the view has the snapshots. */
  def known(): Future[Unit] = {
    val reading = Promise[Unit]()
    val (underWay, begins) = state.modify { of =>
      of.listing.filterNot(_.value.exists(_.isFailure)) match {
        case Some(known) => (of, (known, false))
        case None => (of.copy(listing = Some(reading.future)), (reading.future, true))
      }
    }
    if (begins) {
      val view = state.get.view
      val existing = view.entries.keysIterator.filter(view.isForeign).toVector
      reading.completeWith(SnapshotLists.of(existing)(read).map(list => state.change(_.listed(list)): Unit)): Unit
    }
    underWay
  }

  private def read(batch: Long): Future[EntryFound] =
    if (newest.logged.exists(_.batch == batch)) Future.successful(newest)
    else entries.read(batch, state.get.view.lengthOf(batch))
}
