package sparkdstl.log.coordinator.view

import java.util.UUID

import scala.collection.immutable.{TreeMap, TreeSet}

import sparkdstl.log.format.{HeldSnapshot, LogFileIndex, SnapshotList}
import sparkdstl.log.read.EntryFound

/** What a run knows of one commit entry; `bytes` is its size, with the changes that it names in data files as far as they are known. */
private[coordinator] sealed trait EntryState {
  def bytes: Long
}

private[coordinator] object EntryState {

  /** It was listed at the start of the run, and not read. */
  final case class Unread(bytes: Long) extends EntryState

  /** It has no segments: stock Spark wrote it, or its batch had no stateful operator. */
  final case class Plain(bytes: Long) extends EntryState

  /** It has segments; [[FileNames]] has the data files that it names. */
  final case class Logged(bytes: Long) extends EntryState
}

/**
 * All that stands in the log of one query, as one run knows it: its commit entries, which of them are to be deleted, the
 * snapshots that they hold, and the data files that they name. Immutable: each transition returns the next value, so that no
 * part of it can disagree with another.
 *
 * @param epoch of this run
 * @param entries by batch
 * @param newestId of the newest entry; None if that has none
 * @param requested entries whose deletion Spark has requested, and that may still be needed
 * @param stores directories of the stores that the newest entry with segments has changed
 * @param released the lowest version that each store needs, as Spark's own retention of plain snapshots has released them
 * @param snapshots None until the entries that existed at the start were asked for them
 * @param unneeded data files that were released for deletion, and may still be on storage
 * @param fences
 *   batches whose entries stay although no version needs them, because a run that was paused may try to create them; see
 *   [[Claim]]
 * @param ownFrom the first batch that this run has committed
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
    ownFrom: Option[Long] = None
) {
  import EntryState._

  /** The newest batch with an entry; -1 if there is none. */
  def newest: Long = if (entries.isEmpty) -1L else entries.lastKey

  /** Whether the entry of `batch` was written by another run. */
  def isForeign(batch: Long): Boolean = ownFrom.forall(batch < _)

  /** Whether any entry of another run is known. */
  def hasForeign: Boolean = entries.headOption.exists { case (batch, _) => isForeign(batch) }

  /** Snapshots in commit entries of a store, in ascending order of versions. */
  def snapshotsOf(store: String): Vector[HeldSnapshot] = snapshots.fold(Vector.empty[HeldSnapshot])(_.of(store))

  /** Size of the log in bytes. Snapshots in data files are not part of it: the log is what they replace. */
  def bytes: Long = entries.valuesIterator.map(_.bytes).sum

  /** This run has committed `batch` with an entry of so many bytes, data files of changes included. */
  def committed(batch: Long, index: LogFileIndex, size: Long): LogView = {
    val changed = index.changedStores
    copy(
      entries = entries + (batch -> (if (index.entries.isEmpty) Plain(size) else Logged(size))),
      newestId = index.link.map(_.entry),
      stores = if (changed.isEmpty) stores else changed,
      snapshots = for (known <- snapshots; list <- index.snapshots) yield known.committed(batch, list),
      files = files.forgetSeals(batch).name(Namer.Entry(batch), index.files),
      ownFrom = ownFrom.orElse(Some(batch))
    )
  }

  /** The entry of `batch` was read. */
  def read(batch: Long, found: EntryFound): LogView = (entries.get(batch), found) match {
    case (None, _) => this
    case (_, EntryFound.Absent) => deleted(Seq(batch))
    case (Some(known), EntryFound.Plain) => copy(entries = entries + (batch -> Plain(known.bytes)))
    case (Some(known), EntryFound.Logged(entry)) =>
      val changed = entry.index.changedStores
      copy(
        entries = entries + (batch -> (if (changed.isEmpty) Plain(known.bytes) else Logged(known.bytes))),
        // The newest entry had none: the log has been off since. These are the stores that may need what is below it.
        stores = if (stores.isEmpty) changed else stores,
        files = files.name(Namer.Entry(batch), entry.index.files)
      )
  }

  /** The entry of `batch` cannot be read. Only one with segments can be damaged; the files that it names stay. */
  def damaged(batch: Long): LogView =
    entries.get(batch).fold(this)(known => copy(entries = entries + (batch -> Logged(known.bytes))))

  /** The entries that existed at the start list these snapshots. Lists may name entries that were deleted since. */
  def listed(list: SnapshotList): LogView =
    if (snapshots.nonEmpty) this
    else {
      val standing = list.copy(held = list.held.filter(snapshot => entries.contains(snapshot.batch)))
      val named = standing.held.groupBy(_.batch).foldLeft(files) { case (all, (batch, held)) =>
        all.name(Namer.Entry(batch), held.iterator.flatMap(_.files).toSet)
      }
      copy(snapshots = Some(SnapshotIndex.of(standing)), files = named)
    }

  /** Spark requests the deletion of the entry of `batch`, which may still be needed. */
  def requestedToDelete(batch: Long): LogView =
    if (entries.contains(batch)) copy(requested = requested + batch) else this

  /** A store needs no version below `version`. Never goes down. */
  def releasedBelow(store: String, version: Long): LogView =
    if (released.getOrElse(store, 0L) >= version) this else copy(released = released + (store -> version))

  /** These entries are on storage, and no others of earlier runs: another run may delete what it has written. */
  def seenOnStorage(batches: Set[Long]): LogView =
    deleted(entries.keysIterator.takeWhile(isForeign).filterNot(batches).toVector)

  /** The entries of these batches were deleted. */
  def deleted(batches: Seq[Long]): LogView = batches.foldLeft(this)((view, batch) =>
    view.copy(
      entries = view.entries - batch,
      requested = view.requested - batch,
      snapshots = view.snapshots.map(_.deleted(batch)),
      files = view.files.forget(Namer.Entry(batch))
    )
  )

  /** The entries of these batches are about to be deleted, and name nothing from now on. */
  def releaseWith(batches: Seq[Long]): LogView = {
    val theirs = batches.iterator.flatMap(batch => files.of(Namer.Entry(batch))).toSet
    copy(files = batches.foldLeft(files)((all, batch) => all.forget(Namer.Entry(batch)))).release(theirs)
  }

  /** Those of these data files that have no name become [[unneeded]]: from now on no snapshot can consist of them. */
  def release(unused: Set[String]): LogView = {
    val (released, unnamed) = files.release(unused)
    copy(files = released, unneeded = unneeded ++ unnamed)
  }

  /** These data files are not on storage any more. */
  def filesDeleted(gone: Set[String]): LogView = copy(unneeded = unneeded -- gone)

  /** Entries that runs which may still be alive would create next. */
  def fencedAt(batches: Set[Long]): LogView = copy(fences = batches)

  /**
   * A task attempt seals snapshots that consist of these data files.
   *
   * @return by snapshot, those of its files that may be gone; of such a snapshot nothing is named
   */
  def promised[K](seal: Namer.Seal, snapshots: Map[K, Set[String]]): (LogView, Map[K, Set[String]]) = {
    val missing = snapshots.map { case (of, needed) => of -> files.missing(needed, epoch) }.filter(_._2.nonEmpty)
    val taken = snapshots.iterator.filterNot(of => missing.contains(of._1)).flatMap(_._2).toSet
    (copy(files = files.name(seal, taken)), missing)
  }
}

private[coordinator] object LogView {

  /**
   * The view of a run that begins.
   *
   * @param sizes of the entries that were listed, by batch
   * @param newest what the newest of them is
   */
  def start(epoch: Long, sizes: Map[Long, Long], newest: EntryFound): LogView = {
    val unread = sizes.map { case (batch, bytes) => batch -> (EntryState.Unread(bytes): EntryState) }
    val view = new LogView(epoch, TreeMap.empty[Long, EntryState] ++ unread, newest.logged.flatMap(_.id))
    view.read(view.newest, newest)
  }
}
