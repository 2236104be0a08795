// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import scala.collection.immutable.TreeMap

import sparkdstl.log.format.{CommittedSegment, HeldSnapshot, SegmentKind, SnapshotList}

/**
 * The snapshots that commit entries hold. Immutable. Stores may have plain files up to version `plainUpTo`, or 0. `complete` is
 * the newest entry of this run that lists all snapshots; later entries list only newer ones.
 */
private[coordinator] final case class SnapshotIndex private (
    byStore: Map[String, Vector[HeldSnapshot]],
    byBatch: TreeMap[Long, Vector[HeldSnapshot]],
    plainUpTo: Long,
    complete: Option[Long]
) {

  /** The snapshots of a store, in ascending order of versions. */
  def of(store: String): Vector[HeldSnapshot] = byStore.getOrElse(store, Vector.empty)

  /**
   * The list for the entry of `batch`. One entry in `completeEvery` lists all snapshots; the others continue its list. With
   * `plainSnapshots` snapshots of every version may be plain files.
   */
  def listFor(
      batch: Long,
      segments: Vector[CommittedSegment],
      completeEvery: Long,
      plainSnapshots: Boolean
  ): SnapshotList = {
    val ofSnapshots = segments.filter(_.key.kind.isOfSnapshot).groupBy(_.key.storeDirectory)
    val own = segments.iterator.map(_.key).filter(_.kind == SegmentKind.Snapshot).map { zip =>
      val files = ofSnapshots(zip.storeDirectory).iterator.flatMap(_.parts).flatMap(_.toOption).flatMap(_.file)
      HeldSnapshot(zip, batch, files.toVector.distinct.sorted)
    }
    val hasChanges = segments.exists(_.key.kind == SegmentKind.Changelog)
    val plain = if (plainSnapshots || !hasChanges) batch + 1 else if (batch == 0) 0 else math.min(plainUpTo, batch)
    val continued = complete.filter(of => batch > of && batch - of < completeEvery)
    val before = continued.fold(byBatch.valuesIterator)(of => byBatch.valuesIteratorFrom(of + 1))
    SnapshotList(continued.getOrElse(batch), plain, before.flatten.toVector ++ own)
  }

  def committed(batch: Long, list: SnapshotList): SnapshotIndex =
    list.held.filter(_.batch == batch).foldLeft(this)(_ add _).copy(
      plainUpTo = list.plainUpTo,
      complete = if (list.complete == batch) Some(batch) else complete
    )

  def deleted(batch: Long): SnapshotIndex = {
    val gone = byBatch.getOrElse(batch, Vector.empty)
    val left = gone.foldLeft(byStore) { (all, snapshot) =>
      val others = all.getOrElse(snapshot.key.storeDirectory, Vector.empty).filterNot(_ == snapshot)
      if (others.isEmpty) all - snapshot.key.storeDirectory else all + (snapshot.key.storeDirectory -> others)
    }
    copy(left, byBatch - batch, complete = complete.filter(_ != batch))
  }

  private def add(snapshot: HeldSnapshot): SnapshotIndex = {
    val (older, newer) = of(snapshot.key.storeDirectory).span(_.key.version <= snapshot.key.version)
    copy(
      byStore + (snapshot.key.storeDirectory -> ((older :+ snapshot) ++ newer)),
      byBatch + (snapshot.batch -> (byBatch.getOrElse(snapshot.batch, Vector.empty) :+ snapshot))
    )
  }
}

private[coordinator] object SnapshotIndex {
  val empty: SnapshotIndex = new SnapshotIndex(Map.empty, TreeMap.empty, Long.MaxValue, None)

  /** The index of a list that was read at the start of a run. */
  def of(list: SnapshotList): SnapshotIndex =
    new SnapshotIndex(
      list.held.groupBy(_.key.storeDirectory).map { case (store, held) => store -> held.sortBy(_.key.version) },
      TreeMap.empty[Long, Vector[HeldSnapshot]] ++ list.held.groupBy(_.batch),
      list.plainUpTo,
      None
    )
}
