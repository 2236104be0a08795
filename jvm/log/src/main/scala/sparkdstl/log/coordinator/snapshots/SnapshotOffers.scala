package sparkdstl.log.coordinator.snapshots

import scala.collection.mutable

import sparkdstl.log.coordinator.attempts.{HeldSegment, InlineBudget}
import sparkdstl.log.format.{CommittedSegment, SegmentKey}
import sparkdstl.log.transport.{FromDriver, SealedPart, ToDriver}

/** A snapshot that an executor has made of a committed version, and that the next commit entry may hold. */
private[coordinator] final class SnapshotOffer(val message: ToDriver.OfferSnapshot) {
  val key: SegmentKey = message.key

  /** Bytes that the driver holds of it. */
  val inlineBytes: Long = HeldSegment.inlineBytes(message.segments.flatMap(_.parts))

  /** Data files that hold parts of it. */
  val files: Set[String] = message.segments.iterator.flatMap(_.parts)
    .collect { case SealedPart.Stored(part) => part }.flatMap(_.file).toSet

  def segments: Vector[CommittedSegment] = message.segments.map { segment =>
    val parts = segment.parts.collect {
      case SealedPart.Inline(bytes) => Left(bytes)
      case SealedPart.Stored(part) => Right(part)
    }
    CommittedSegment(segment.key, message.attempt, parts)
  }
}

/**
 * Snapshots that wait for a commit entry, at most one of each store: a newer one replaces it. Thread-safe.
 *
 * @param budget
 *   for the bytes that are held here
 * @param letGo
 *   told of data files that nobody needs any more
 */
private[coordinator] final class SnapshotOffers(budget: InlineBudget, files: SharedFiles, letGo: Set[String] => Unit) {
  import SnapshotOffers._

  // Guarded by this, in the order in which they came.
  private val waiting = mutable.LinkedHashMap.empty[String, SnapshotOffer]
  // Of each store the newest that an entry has come to hold: it may be offered once more by who looked before that.
  private val newestHeld = mutable.HashMap.empty[String, SegmentKey]
  private var ended = false
  private var lineage = 0L

  /** Changes whenever somebody goes back: what was committed before may not be any more. */
  def currentLineage: Long = synchronized(lineage)

  /**
   * Takes a snapshot of a version that is known to be committed, by the attempt that made it.
   *
   * @param asOf
   *   the lineage in which that is known
   */
  def take(offer: SnapshotOffer, asOf: Long): FromDriver = {
    val (answer, unneeded) = synchronized {
      val store = offer.key.storeDirectory
      val before = waiting.get(store)
      val inEntry = answerIfHeld(newestHeld.get(store), offer.key)
      if (ended) (FromDriver.Superseded, Set.empty[String])
      else if (asOf != lineage) (FromDriver.NotYet, Set.empty[String])
      else if (inEntry.nonEmpty) (inEntry.get, Set.empty[String])
      else if (before.exists(_.key == offer.key)) (FromDriver.Noted, Set.empty[String])
      else if (before.exists(_.key.version > offer.key.version))
        (FromDriver.SnapshotRefused("a newer one waits for its commit entry", Vector.empty), Set.empty[String])
      else taken(offer, before)
    }
    if (unneeded.nonEmpty) letGo(unneeded)
    answer
  }

  /** The answer, and the files that nobody needs any more. Lock held. */
  private def taken(offer: SnapshotOffer, before: Option[SnapshotOffer]): (FromDriver, Set[String]) = {
    val missing = files.nameIfThere(namer(offer), offer.files)
    if (missing.nonEmpty)
      (FromDriver.SnapshotRefused("files that it consists of are gone", missing.toVector.sorted), Set.empty)
    else if (!budget.tryAcquire(offer.inlineBytes)) {
      files.forget(namer(offer)): Unit
      (FromDriver.OverBudget, Set.empty)
    } else {
      before.foreach(remove)
      waiting.put(offer.key.storeDirectory, offer)
      (FromDriver.Noted, files.letGo(before.map(namer)))
    }
  }

  /** Those that the entry of `batch` is to hold, within what it may grow by. From here on it names their files. */
  def forEntry(batch: Long): Vector[SnapshotOffer] = synchronized {
    val ready = waiting.valuesIterator.toVector
    val sizes = ready.iterator.map(_.inlineBytes).scanLeft(0L)(_ + _).drop(1)
    val fitting = sizes.takeWhile(_ <= MaxInlineBytesOfAnEntry).size
    val taken = ready.take(math.max(1, fitting))
    files.name(SharedFiles.Written(batch), taken.flatMap(_.files))
    taken
  }

  /** An entry holds them now. */
  def held(keys: Set[SegmentKey]): Unit = synchronized {
    keys.foreach(key => newestHeld.put(key.storeDirectory, key))
    keys.foreach(key => waiting.get(key.storeDirectory).filter(_.key == key).foreach(forget))
  }

  /** How many wait. */
  def size: Int = synchronized(waiting.size)

  /** Versions above this one are not committed any more. */
  def goBackTo(version: Long): Unit = synchronized {
    lineage += 1
    newestHeld.clear()
    waiting.valuesIterator.filter(_.key.version > version).toVector.foreach(forget)
  }

  /** Takes nothing any more, and lets go of all bytes. */
  def end(): Unit = synchronized {
    ended = true
    waiting.valuesIterator.toVector.foreach(remove)
  }

  /** Its files are left where they are. Lock held. */
  private def forget(offer: SnapshotOffer): Unit = {
    files.forget(namer(offer)): Unit
    remove(offer)
  }

  /** Lock held. */
  private def remove(offer: SnapshotOffer): Unit = {
    waiting.remove(offer.key.storeDirectory): Unit
    budget.release(offer.inlineBytes)
  }

  private def namer(offer: SnapshotOffer): SharedFiles.Namer =
    SharedFiles.Offer(offer.key.storeDirectory, offer.key.version)
}

private object SnapshotOffers {

  /** What is said of a snapshot when entries hold these of its store; None if it may still be wanted. */
  def answerIfHeld(held: Iterable[SegmentKey], key: SegmentKey): Option[FromDriver] =
    if (held.exists(_ == key)) Some(FromDriver.SnapshotHeld)
    else if (held.exists(_.version > key.version))
      Some(FromDriver.SnapshotRefused("a newer one is in a commit entry", Vector.empty))
    else None

  /**
   * A commit entry is written while the query waits for it. So it takes no more than this of snapshots' own bytes, and the
   * rest waits for the entries after it.
   */
  private val MaxInlineBytesOfAnEntry = 256L * 1024
}
