// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

/** The next steps of retention: entries to delete, the oldest first, and entries that must be read before. */
private[coordinator] final case class RetentionPlan(delete: Vector[Long], read: Vector[Long]) {
  def isEmpty: Boolean = delete.isEmpty && read.isEmpty
}

/**
 * Decides which commit entries are deleted.
 *
 * An entry is deleted once Spark has requested it and no store needs the entry. A store needs the entries from which its lowest
 * retained version and all later ones are rebuilt (see [[lowestVersion]]), and every entry as long as that version is unknown.
 * Entries without segments are kept under the same rule: otherwise a late write could take their names while a store needs the
 * plain files of their batches. A pinned batch counts as one that Spark retains, and so do all later ones: its reader may
 * follow the log from there. Retention never deletes the newest entry or a fenced one.
 */
private[coordinator] object RetentionPlan {

  /** @param limits of one round */
  def of(view: LogView, limits: RetentionLimits): RetentionPlan = {
    val candidates = view.requested.iterator.filter(isCandidate(view))
    if (candidates.isEmpty) NothingToDo
    else if (view.stores.isEmpty) withoutStores(view, limits)
    else {
      val oldest = oldestRetained(view)
      val lowest = neededFrom(view, oldest, view.stores)
      val unneeded = candidates.takeWhile(_ < lowest).take(limits.deletions).toVector
      if (unneeded.isEmpty) NothingToDo
      else removedStores(view, oldest) match {
        case None => RetentionPlan(Vector.empty, Vector(oldest).filter(isUnread(view)))
        case Some(Vector()) => deletionOf(view, unneeded)
        case Some(removed) =>
          val lowestOfRemoved = neededFrom(view, oldest, removed)
          deletionOf(view, unneeded.takeWhile(_ < lowestOfRemoved))
      }
    }
  }

  /**
   * Whether a version that Spark retains may need an entry with segments. As long as one does, a query cannot continue without
   * this project's file manager.
   */
  def needsLog(view: LogView): Boolean = view.lastLogged.exists { last =>
    val lowest = if (view.stores.isEmpty) 0L else neededFrom(view, oldestRetained(view), view.stores)
    view.entries.range(lowest, last + 1).valuesIterator.exists(!_.isInstanceOf[EntryState.Plain])
  }

  private val NothingToDo = RetentionPlan(Vector.empty, Vector.empty)

  private def deletionOf(view: LogView, batches: Vector[Long]) = RetentionPlan(batches, batches.filter(isUnread(view)))

  /**
   * The stores that the oldest retained batch has, and the newest has not: a repartition since then, which writes plain
   * snapshots, has removed them. Stores between two repartitions begin above the oldest retained batch. None if its entry must
   * be read first, or is damaged.
   */
  private def removedStores(view: LogView, oldest: Long): Option[Vector[String]] = {
    val ofOldest =
      if (view.snapshots.exists(_.plainUpTo <= oldest + 1)) Some(Vector.empty)
      else view.entries.get(oldest) match {
        case Some(_: EntryState.Unread) => None
        case Some(logged: EntryState.Logged) => logged.stores
        case Some(_: EntryState.Plain) | None => Some(Vector.empty)
      }
    ofOldest.map(_.filterNot(view.stores.toSet))
  }

  /**
   * The lowest retained version of a store; 0 if the store needs every entry. Its snapshot is the newest that the oldest
   * retained entry or an older one holds: a rollback would delete a snapshot in a later entry. The newest two snapshots and the
   * changes between them also stay, because one may be damaged.
   */
  def lowestVersion(view: LogView, store: String): Long = lowestVersion(view, oldestRetained(view), store)

  private def lowestVersion(view: LogView, oldest: Long, store: String): Long = {
    val logged = view.snapshotsOf(store)
    val ofSnapshots =
      if (logged.sizeIs < 2) None
      else logged.reverseIterator.find(_.batch <= oldest).map(base =>
        math.min(base.key.version, logged(logged.size - 2).key.version)
      )
    math.max(ofSnapshots.getOrElse(0L), view.released.getOrElse(store, 0L))
  }

  /** The oldest batch that stores need. Version v is in the entry of batch v - 1: below that of the lowest version nothing is needed. */
  private def neededFrom(view: LogView, oldest: Long, stores: Iterable[String]): Long =
    stores.iterator.map(lowestVersion(view, oldest, _)).min - 1

  private def oldestRetained(view: LogView): Long =
    if (view.requested.isEmpty) -1L
    else {
      val bySpark = view.entries.keysIterator.find(batch => !view.requested(batch)).getOrElse(view.newest)
      math.min(bySpark, view.oldestPinned.getOrElse(Long.MaxValue))
    }

  /** Without stores in the view, entries without segments are deleted on request. */
  private def withoutStores(view: LogView, limits: RetentionLimits): RetentionPlan = {
    val plain = view.requested.iterator
      .filter(batch => isCandidate(view)(batch) && view.entries.get(batch).exists(_.isInstanceOf[EntryState.Plain]))
      .take(limits.deletions).toVector
    if (plain.nonEmpty) RetentionPlan(plain, Vector.empty)
    else RetentionPlan(Vector.empty, view.requested.iterator.filter(isUnread(view)).take(limits.reads).toVector)
  }

  private def isCandidate(view: LogView)(batch: Long): Boolean =
    batch < view.newest && !view.fences(batch) && view.oldestPinned.forall(batch < _)

  private def isUnread(view: LogView)(batch: Long): Boolean =
    view.entries.get(batch).exists(_.isInstanceOf[EntryState.Unread])
}

/**
 * Limits of one round of retention: deletions of entries and of data files, and reads of entries that may have no segments. A
 * round has a deadline each for files, entries and pins, and one that fails begins anew.
 */
final case class RetentionLimits(deletions: Int = 100, reads: Int = 10, files: Int = 1000)
