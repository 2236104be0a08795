// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.attempts

import sparkdstl.log.format.SegmentKind

/** The seal of one attempt for a store. */
private[coordinator] final case class Candidate(attempt: Long, segments: Vector[HeldSegment]) {
  def isDurable: Boolean = segments.forall(_.state == SealState.Durable)
}

/** The attempts of which one counts for a store or a segment; the last is preferred. */
private[coordinator] final class StoreChoice(val store: String, val candidates: Vector[Candidate]) {

  /** The attempt that counts: the last one whose segments are all durable. */
  def durable: Option[Candidate] = candidates.reverseIterator.find(_.isDurable)

  /** Whether nothing is waited for. A segment that counts as lost may still be reported as durable. */
  def isSettled: Boolean =
    candidates.last.isDurable || candidates.forall(_.segments.forall(_.state != SealState.Sealed))

  /** Executors that hold segments which are not uploaded. */
  def holders: Iterator[String] =
    candidates.iterator.flatMap(_.segments).filter(_.state == SealState.Sealed).map(_.executor)

  def whyLost: String =
    candidates.reverseIterator.flatMap(_.segments).find(_.state == SealState.Lost).fold("it was withdrawn")(_.whyLost)
}

/** The winner rule: selects the attempts whose changes are committed, for each store of a batch. Pure. */
private[coordinator] object WinnerSelection {

  /** The choices of all stores; and executor, attempt and store directory of seals that cannot be committed any more. */
  final case class Result(choices: Vector[StoreChoice], losers: Vector[(String, Long, String)])

  /** Selects from the seals of each store's attempts, in order of arrival; see [[AttemptLedger.close]]. */
  def of(sealedBy: Seq[(String, Vector[Candidate])], ids: Set[String], reported: Seq[Long]): Result = {
    val order = reported.zipWithIndex.toMap
    val byStore = sealedBy.map { case (store, candidates) => (choicesOf(store, candidates, ids, order), candidates) }
    Result(byStore.flatMap(_._1).toVector, byStore.flatMap((losersOf _).tupled).toVector)
  }

  /**
   * Selects the seal of a task as a whole. Without a known task each segment is sealed and selected alone: a changelog and its
   * checksum sibling may come from different attempts. With checkpoint ids, each id selects one segment.
   */
  private def choicesOf(
      store: String,
      sealedBy: Vector[Candidate],
      ids: Set[String],
      order: Map[Long, Int]
  ): Vector[StoreChoice] = {
    val named =
      if (ids.isEmpty) sealedBy
      else sealedBy.map(of => of.copy(segments = of.segments.filter(isNamedBy(ids, of))))
        .filter(_.segments.nonEmpty)
    val ofTasks = named.filter(_.attempt >= 0)
    val taken = ofTasks.filter(of => order.contains(of.attempt))
    if (ofTasks.isEmpty || named.exists(_.segments.exists(_.key.checkpointId.nonEmpty))) segmentBySegment(store, named)
    else if (taken.nonEmpty) Vector(new StoreChoice(store, Vector(taken.maxBy(of => order(of.attempt)))))
    else Vector(new StoreChoice(store, ofTasks.sortBy(_.attempt)))
  }

  /** Whether an id in the entry selects the segment. A file of a snapshot has no id; the id of its zip decides. */
  private def isNamedBy(ids: Set[String], of: Candidate)(segment: HeldSegment): Boolean =
    if (segment.key.kind == SegmentKind.SnapshotFile)
      of.segments.exists(zip => zip.key.kind == SegmentKind.Snapshot && zip.key.checkpointId.exists(ids))
    else segment.key.checkpointId.forall(ids)

  private def segmentBySegment(store: String, sealedBy: Vector[Candidate]): Vector[StoreChoice] =
    sealedBy.flatMap(of => of.segments.map(segment => Candidate(of.attempt, Vector(segment))))
      .groupBy(_.segments.head.key).valuesIterator.map(new StoreChoice(store, _)).toVector

  private def losersOf(chosen: Vector[StoreChoice], sealedBy: Vector[Candidate]): Vector[(String, Long, String)] =
    if (chosen.isEmpty || chosen.exists(_.candidates.size > 1)) Vector.empty
    else {
      val winners = chosen.iterator.map(_.candidates.head.attempt).toSet
      sealedBy.filterNot(of => of.attempt < 0 || winners(of.attempt))
        .map(of => (of.segments.head.executor, of.attempt, of.segments.head.store))
    }
}
