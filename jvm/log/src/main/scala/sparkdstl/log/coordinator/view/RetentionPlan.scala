package sparkdstl.log.coordinator.view

/**
 * What retention is to do next.
 *
 * @param delete entries, the oldest first
 * @param read entries that must be read before anything can be deleted
 */
private[coordinator] final case class RetentionPlan(delete: Vector[Long], read: Vector[Long]) {
  def isEmpty: Boolean = delete.isEmpty && read.isEmpty
}

/**
 * Decides which commit entries are deleted.
 *
 * An entry goes once Spark has requested its deletion and no store needs it. A store needs the entries from which its
 * lowest retained version and all later ones are rebuilt, see [[lowestVersion]]; without one that is known it needs
 * everything. An entry without segments holds no state, but as long as a store needs the files that stand for it no late write
 * may take its name. The newest entry is never deleted here, nor one that is a fence.
 */
private[coordinator] object RetentionPlan {

  /** @param limits how much one round may do */
  def of(view: LogView, limits: RetentionLimits): RetentionPlan = {
    val candidates = view.requested.iterator.filter(isCandidate(view))
    if (candidates.isEmpty) RetentionPlan(Vector.empty, Vector.empty)
    else if (view.stores.isEmpty) withoutStores(view, limits)
    else {
      val oldest = oldestRetained(view)
      // Version v is in the entry of batch v - 1: below the entry of the lowest version's batch nothing is needed.
      val needed = view.stores.iterator.map(lowestVersion(view, oldest, _)).min - 1
      val delete = candidates.takeWhile(_ < needed).take(limits.deletions).toVector
      RetentionPlan(delete, delete.filter(isUnread(view)))
    }
  }

  /**
   * The lowest version of a store that is retained. Its snapshot is the newest that the oldest retained entry, or one before
   * it, holds: one that a later entry holds would be gone after a rollback. The newest two snapshots stay, and what leads from
   * one to the other, because one may be damaged. 0 if the store needs everything.
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

  private def oldestRetained(view: LogView): Long =
    if (view.requested.isEmpty) -1L
    else view.entries.keysIterator.find(batch => !view.requested(batch)).getOrElse(view.newest)

  /** No store has anything in the log, as far as is known: entries without segments go when Spark asks. */
  private def withoutStores(view: LogView, limits: RetentionLimits): RetentionPlan = {
    val plain = view.requested.iterator
      .filter(batch => isCandidate(view)(batch) && view.entries.get(batch).exists(_.isInstanceOf[EntryState.Plain]))
      .take(limits.deletions).toVector
    if (plain.nonEmpty) RetentionPlan(plain, Vector.empty)
    else RetentionPlan(Vector.empty, view.requested.iterator.filter(isUnread(view)).take(limits.reads).toVector)
  }

  private def isCandidate(view: LogView)(batch: Long): Boolean = batch < view.newest && !view.fences(batch)

  private def isUnread(view: LogView)(batch: Long): Boolean =
    view.entries.get(batch).exists(_.isInstanceOf[EntryState.Unread])
}

/**
 * How much one round of retention does.
 *
 * @param deletions of entries, at most
 * @param reads of entries of which it is not known whether they have segments, at most
 */
final case class RetentionLimits(deletions: Int = 100, reads: Int = 10)
