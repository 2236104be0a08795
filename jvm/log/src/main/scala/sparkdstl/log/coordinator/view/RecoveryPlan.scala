// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import sparkdstl.log.transport.{FromDriver, SnapshotPlace}

/**
 * The snapshots and changelogs in commit entries from which the versions of a store that Spark retains are rebuilt. What only pins
 * keep is of no use to a query.
 */
private[coordinator] object RecoveryPlan {
  def of(view: LogView, store: String): FromDriver.Versions = {
    val lowest = RetentionPlan.lowestVersion(view.pinnedAt(Set.empty), store)
    val changelogs = view.entries.iteratorFrom(math.max(0L, lowest - 1))
      .collect { case (batch, state) if !state.isInstanceOf[EntryState.Plain] => batch + 1 }
    FromDriver.Versions(
      changelogs.toVector,
      view.snapshotsOf(store).filter(_.key.version >= lowest).map(SnapshotPlace.of),
      view.snapshots.fold(Long.MaxValue)(_.plainUpTo),
      lowest
    )
  }
}
