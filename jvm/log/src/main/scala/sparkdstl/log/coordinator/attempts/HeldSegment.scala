package sparkdstl.log.coordinator.attempts

import scala.collection.mutable

import sparkdstl.log.format.{SegmentKey, SegmentKind, SegmentPart}
import sparkdstl.log.transport.SealedPart

/**
 * One segment that one task attempt has sealed, and what has become of it. Guarded by the ledger that holds it.
 *
 * @param attempt
 *   the task attempt; negative where a thread without a task has sealed it
 * @param executor
 *   that holds what is not durable
 */
private[coordinator] final class HeldSegment(
    val key: SegmentKey,
    val attempt: Long,
    val executor: String,
    sealedParts: Vector[SealedPart]
) {

  /** The store's directory. */
  val store: String = key.storeDirectory

  /** By which its executor will report. */
  val tickets: Vector[Long] = sealedParts.collect { case SealedPart.Pending(ticket, _) => ticket }

  /** The choice that depends on it, once its batch is closed. */
  var choice: Option[StoreChoice] = None

  private var parts = sealedParts
  private val places = mutable.HashMap.empty[Long, SegmentPart]
  private var why = "it is not durable"
  private var current: SealState = if (tickets.isEmpty) SealState.Durable else SealState.Sealed

  def state: SealState = current

  /** Bytes of it that the driver holds. */
  def inlineBytes: Long = HeldSegment.inlineBytes(parts)

  /** Data files that are known to hold some of it. */
  def files: Iterator[String] =
    parts.iterator.collect { case SealedPart.Stored(part) => part }.flatMap(_.file) ++
      places.valuesIterator.flatMap(_.file)

  /** The upload of that ticket is durable. */
  def place(ticket: Long, part: SegmentPart): Unit = {
    places.put(ticket, part)
    if (places.size == tickets.size && current != SealState.Withdrawn) become(SealState.Durable)
  }

  /** What is not durable is lost, unless word of it still comes. */
  def lose(reason: String): Unit =
    if (current == SealState.Sealed || current == SealState.Lost) {
      why = reason
      become(SealState.Lost)
    }

  /** It does not count. Its bytes are let go. */
  def withdraw(): Unit = {
    become(SealState.Withdrawn)
    parts = parts.filter { case _: SealedPart.Inline => false; case _ => true }
  }

  def whyLost: String = why

  /** Where all of it is; it must be durable. */
  def placed: Vector[Either[Array[Byte], SegmentPart]] = parts.map {
    case SealedPart.Inline(bytes) => Left(bytes)
    case SealedPart.Stored(part) => Right(part)
    case SealedPart.Pending(ticket, _) => Right(places(ticket))
  }

  private def become(state: SealState): Unit = current = SealState.next(current, state)
}

private[coordinator] object HeldSegment {
  def inlineBytes(parts: Iterable[SealedPart]): Long =
    parts.iterator.collect { case SealedPart.Inline(bytes) => bytes.length.toLong }.sum
}

/** What one attempt has sealed of a store. */
private[coordinator] final case class Candidate(attempt: Long, segments: Vector[HeldSegment]) {
  def isDurable: Boolean = segments.forall(_.state == SealState.Durable)
}

/**
 * The attempts that may count for a store, or for one segment of it, the last one first choice. Once it is settled it
 * stays so.
 */
private[coordinator] final class StoreChoice(val store: String, val candidates: Vector[Candidate]) {

  /** The one that counts, if any does. */
  def durable: Option[Candidate] = candidates.reverseIterator.find(_.isDurable)

  /** Whether no report can change any more for the better what counts. */
  def isSettled: Boolean =
    candidates.last.isDurable || candidates.forall(_.segments.forall(_.state != SealState.Sealed))

  /** Executors that have something left to upload. */
  def holders: Iterator[String] =
    candidates.iterator.flatMap(_.segments).filter(_.state == SealState.Sealed).map(_.executor)

  def whyLost: String =
    candidates.reverseIterator.flatMap(_.segments).find(_.state == SealState.Lost).fold("it was withdrawn")(_.whyLost)
}

private[coordinator] object StoreChoice {

  /**
   * Chooses for one store among what attempts have sealed of it, in the order in which they did.
   *
   * What a task has sealed counts as a whole. Where no task is known each segment was sealed for itself, and is chosen for
   * itself: a changelog and its checksum sibling come from attempts of their own. So it is with checkpoint ids, by which
   * there is only one of each.
   *
   * @param ids
   *   the state store checkpoint ids that the commit entry names; empty if there are none in this checkpoint
   * @param order
   *   of the attempts whose results Spark has taken
   */
  def of(store: String, sealedBy: Vector[Candidate], ids: Set[String], order: Map[Long, Int]): Vector[StoreChoice] = {
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

  /** A file of a snapshot has no checkpoint id, but belongs to what its attempt has sealed with it. */
  private def isNamedBy(ids: Set[String], of: Candidate)(segment: HeldSegment): Boolean =
    if (segment.key.kind == SegmentKind.SnapshotFile)
      of.segments.exists(zip => zip.key.kind == SegmentKind.Snapshot && zip.key.checkpointId.exists(ids))
    else segment.key.checkpointId.forall(ids)

  private def segmentBySegment(store: String, sealedBy: Vector[Candidate]): Vector[StoreChoice] =
    sealedBy.flatMap(of => of.segments.map(segment => Candidate(of.attempt, Vector(segment))))
      .groupBy(_.segments.head.key).valuesIterator.map(new StoreChoice(store, _)).toVector
}
