// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import java.util.UUID

import scala.collection.immutable.{TreeMap, TreeSet}

import sparkdstl.log.format.{CommitEntry, HeldSnapshot, LogFileIndex, SnapshotList}
import sparkdstl.log.read.EntryFound

/** The state of one commit entry in the view, and its length; `bytes` includes its changes in data files, if they are known. */
private[coordinator] sealed trait EntryState {
  def length: Long
  def bytes: Long = length
}

private[coordinator] object EntryState {

  /** Listed at the start of the run, but not read. */
  final case class Unread(length: Long) extends EntryState

  /** An entry without segments: stock Spark wrote it, or its batch had no stateful operator. */
  final case class Plain(length: Long) extends EntryState

  /**
   * An entry with segments; [[FileNames]] holds the data files that it names.
   *
   * @param stores that it has changed; None if it is damaged
   */
  final case class Logged(length: Long, inFiles: Long = 0L, stores: Option[Vector[String]] = None) extends EntryState {
    override def bytes: Long = length + inFiles
  }
}

/**
 * The contents of one query's log as seen by one run: commit entries, requested deletions, snapshots, and named data files.
 * Immutable: each transition returns the next value, so its parts cannot disagree.
 *
 * @param epoch of this run
 * @param entries by batch
 * @param newestId of the newest entry; None if that entry has none
 * @param requested entries whose deletion Spark has requested, but that may still be needed
 * @param stores directories of the stores that the newest entry with segments has changed
 * @param released the lowest version that each store needs, as Spark's retention of plain snapshots has released them
 * @param snapshots None until the snapshots that existed at the start were listed
 * @param unneeded data files that were released for deletion and may still be on storage
 * @param fences batches whose entries stay because a paused run may try to create them; see [[Claim]]
 * @param pinned batches that readers have pinned: what they need stays as if Spark retained them
 * @param ownFrom the first batch that this run has committed
 * @param lastLogged the newest batch that may have segments; None if the state at the start of the run needed none
 */
private[coordinator] final case class LogView private (
    epoch: Long,
    entries: TreeMap[Long, EntryState],
    newestId: Option[UUID],
    requested: TreeSet[Long] = TreeSet.empty,
    stores: Vector[String] = Vector.empty,
    released: Map[String, Long] = Map.empty,
    snapshots: Option[SnapshotIndex] = None,
    files: FileNames = FileNames.empty,
    unneeded: Set[String] = Set.empty,
    fences: Set[Long] = Set.empty,
    pinned: Set[Long] = Set.empty,
    ownFrom: Option[Long] = None,
    lastLogged: Option[Long] = None
) {
  import EntryState._

  /** The newest batch with an entry; -1 if there is none. */
  def newest: Long = if (entries.isEmpty) -1L else entries.lastKey

  def isForeign(batch: Long): Boolean = ownFrom.forall(batch < _)

  def lengthOf(batch: Long): Option[Long] = entries.get(batch).map(_.length)

  /** The lengths of all entries, by batch. */
  def lengths: Map[Long, Long] = entries.map { case (batch, state) => batch -> state.length }

  def hasForeign: Boolean = entries.headOption.exists { case (batch, _) => isForeign(batch) }

  /** Snapshots in commit entries of a store, in ascending order of versions. */
  def snapshotsOf(store: String): Vector[HeldSnapshot] = snapshots.fold(Vector.empty[HeldSnapshot])(_.of(store))

  /** Size of the log in bytes, without snapshots in data files. */
  def bytes: Long = entries.valuesIterator.map(_.bytes).sum

  /** Adds the entry of a batch that this run has committed. */
  def committed(batch: Long, index: LogFileIndex, length: Long): LogView = {
    val changed = same(index.changedStores)
    val logged = Logged(length, changesInFiles(index), Some(changed))
    copy(
      entries = entries + (batch -> (if (index.entries.isEmpty) Plain(length) else logged)),
      newestId = index.link.map(_.entry),
      stores = if (changed.isEmpty) stores else changed,
      snapshots = for (known <- snapshots; list <- index.snapshots) yield known.committed(batch, list),
      files = files.forgetSeals(batch).name(Namer.Entry(batch), index.files),
      ownFrom = ownFrom.orElse(Some(batch)),
      lastLogged = if (index.entries.isEmpty) lastLogged else Some(batch)
    )
  }

  /** The names of stores, shared by the entries of all batches that change the same. */
  private def same(changed: Vector[String]): Vector[String] = if (changed == stores) stores else changed

  private def changesInFiles(index: LogFileIndex): Long =
    index.entries.iterator.filterNot(_.key.kind.isOfSnapshot).flatMap(_.parts).filter(_.file.nonEmpty)
      .map(_.length.toLong).sum

  def read(batch: Long, found: EntryFound): LogView = (entries.get(batch), found) match {
    case (None, _) => this
    case (_, EntryFound.Absent) => deleted(Seq(batch))
    case (Some(known), EntryFound.Plain) => copy(entries = entries + (batch -> Plain(known.length)))
    case (Some(known), EntryFound.Logged(entry)) =>
      val changed = same(entry.index.changedStores)
      val logged = Logged(known.length, stores = Some(changed))
      copy(
        entries = entries + (batch -> (if (changed.isEmpty) Plain(known.length) else logged)),
        // If the newest entry has no segments, the stores of an older one determine what retention keeps.
        stores = if (stores.isEmpty) changed else stores,
        files = files.name(Namer.Entry(batch), entry.index.files)
      )
  }

  /** Marks an entry as damaged. Only an entry with segments can be damaged; its data files stay. */
  def damaged(batch: Long): LogView =
    entries.get(batch).fold(this)(known => copy(entries = entries + (batch -> Logged(known.length))))

  /** Adds the snapshots that existed at the start of the run. The list may name entries that were deleted since. */
  def listed(list: SnapshotList): LogView =
    if (snapshots.nonEmpty) this
    else {
      val standing = list.copy(held = list.held.filter(snapshot => entries.contains(snapshot.batch)))
      val named = standing.held.groupBy(_.batch).foldLeft(files) { case (all, (batch, held)) =>
        all.name(Namer.Entry(batch), held.iterator.flatMap(_.files).toSet)
      }
      copy(snapshots = Some(SnapshotIndex.of(standing)), files = named)
    }

  def requestedToDelete(batch: Long): LogView =
    if (entries.contains(batch)) copy(requested = requested + batch) else this

  /** Without requests that are not in an earlier view. */
  def asPurgedIn(before: LogView): LogView = copy(requested = requested.intersect(before.requested))

  /** Records that a store needs no version below `version`. The recorded version never decreases. */
  def releasedBelow(store: String, version: Long): LogView =
    if (released.getOrElse(store, 0L) >= version) this else copy(released = released + (store -> version))

  /** Removes entries of other runs that a listing of storage does not contain: those runs may delete them. */
  def seenOnStorage(batches: Set[Long]): LogView =
    deleted(entries.keysIterator.takeWhile(isForeign).filterNot(batches).toVector)

  def deleted(batches: Seq[Long]): LogView = batches.foldLeft(this)((view, batch) =>
    view.copy(
      entries = view.entries - batch,
      requested = view.requested - batch,
      snapshots = view.snapshots.map(_.deleted(batch)),
      files = view.files.forget(Namer.Entry(batch))
    )
  )

  /** Releases the data files of entries that are about to be deleted. */
  def releaseWith(batches: Seq[Long]): LogView = {
    val theirs = batches.iterator.flatMap(batch => files.of(Namer.Entry(batch))).toSet
    copy(files = batches.foldLeft(files)((all, batch) => all.forget(Namer.Entry(batch)))).release(theirs)
  }

  /** Moves the unnamed data files among these to [[unneeded]]: from now on no snapshot can reference them. */
  def release(unused: Set[String]): LogView = {
    val (released, unnamed) = files.release(unused)
    copy(files = released, unneeded = unneeded ++ unnamed)
  }

  def filesDeleted(gone: Set[String]): LogView = copy(unneeded = unneeded -- gone)
  def fencedAt(batches: Set[Long]): LogView = copy(fences = batches)
  def pinnedAt(batches: Set[Long]): LogView = copy(pinned = batches)

  /** The oldest pinned batch with an entry: a pin of an entry that is gone came too late. */
  def oldestPinned: Option[Long] = pinned.filter(entries.contains).minOption

  /** Entries that Spark has purged, and that pins keep. */
  def keptByPins: Int = oldestPinned.fold(0)(requested.rangeFrom(_).size)

  /**
   * Adds the data files of the snapshots that a task attempt seals, except for snapshots with files that may have been
   * deleted. Returns those files.
   */
  def promised[K](seal: Namer.Seal, snapshots: Map[K, Set[String]]): (LogView, Map[K, Set[String]]) = {
    val missing = snapshots.map { case (of, needed) => of -> files.missing(needed, epoch) }.filter(_._2.nonEmpty)
    val taken = snapshots.iterator.filterNot(of => missing.contains(of._1)).flatMap(_._2).toSet
    (copy(files = files.name(seal, taken)), missing)
  }
}

private[coordinator] object LogView {

  /** The view at the start of a run, from the sizes of the listed entries and the newest entry. */
  def start(epoch: Long, sizes: Map[Long, Long], newest: EntryFound): LogView = {
    val unread = sizes.map { case (batch, bytes) => batch -> (EntryState.Unread(bytes): EntryState) }
    val view = new LogView(epoch, TreeMap.empty[Long, EntryState] ++ unread, newest.logged.flatMap(_.id))
    val needsLog =
      newest.logged.exists(entry => entry.index.entries.nonEmpty || entry.content.forall(CommitEntry.needsLog))
    view.copy(lastLogged = Option.when(needsLog)(view.newest)).read(view.newest, newest)
  }
}
