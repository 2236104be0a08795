package sparkdstl.log.worker

import sparkdstl.log.transport.SealedSegment
import sparkdstl.log.upload.PendingChunk

/**
 * One snapshot of a store on its way into a commit entry: it is uploaded in the background, then carried by the seals of the
 * store's next versions until the driver takes it, and held once a later seal of the same local state was taken.
 *
 * The driver takes it only with changes whose base it has verified. So the seal that carries the snapshot proves that its
 * version was committed, and the seal after that proves that the entry which holds it exists. The snapshot is abandoned when
 * the local state is replaced by one from storage. Thread-safe.
 *
 * @param storeDirectory of the store
 * @param version that it is a snapshot of
 */
final class StoreSnapshot(val storeDirectory: String, val version: Long) {
  import StoreSnapshot._

  // Guarded by this.
  private var current: State = Uploading
  private var uploading = Vector.empty[PendingChunk]

  /** A chunk of it is on its way; it is discarded unless a seal names it. */
  def uploads(chunk: PendingChunk): Unit = {
    val isUnwanted = synchronized {
      if (current == Uploading) uploading :+= chunk
      current != Uploading
    }
    if (isUnwanted) chunk.discard()
  }

  /** All of it is durable or inline, and can be carried. */
  def complete(segments: Vector[SealedSegment]): Unit = synchronized {
    if (current == Uploading) current = Complete(segments)
  }

  /** What the seal of `batch` is to carry; nothing while it is uploaded, once it was taken, or if the batch leads to its version. */
  def carry(batch: Long): Vector[SealedSegment] = synchronized(current match {
    case Complete(segments) if version <= batch =>
      current = Sealing(segments, abandoned = false)
      segments
    case _ => Vector.empty
  })

  /**
   * The driver has taken a seal of the store.
   *
   * @param carried whether it was asked to take the snapshot with it
   * @param notTaken
   *   None if it took the snapshot; else the data files of it that may be gone, or none if it may come with a later seal
   */
  def accepted(carried: Boolean, notTaken: Option[Vector[String]]): Fate = {
    val (fate, unnamed) = synchronized {
      val (next, fate) = (current, notTaken) match {
        case (sealing: Sealing, None) if carried => (if (sealing.abandoned) Ended else Taken) -> Fate.Pending
        case (Sealing(_, true), Some(_)) if carried => Ended -> Fate.Pending
        case (Sealing(segments, _), Some(Vector())) if carried => Complete(segments) -> Fate.Pending
        case (_: Sealing, Some(missing)) if carried => Ended -> Fate.Missing(missing.toSet)
        case (Taken, _) if !carried => Ended -> Fate.Held
        case (same, _) => same -> Fate.Pending
      }
      val isUnnamed = next == Ended && current.isInstanceOf[Sealing] && notTaken.nonEmpty
      current = next
      (fate, if (isUnnamed) takeUploads() else Vector.empty)
    }
    unnamed.foreach(_.discard())
    fate
  }

  /** The upload starts again from the beginning. */
  def restart(): Unit = synchronized {
    if (current == Uploading) takeUploads() else Vector.empty
  }.foreach(_.discard())

  /**
   * It will not be carried any more. Its uploads are discarded, those that a seal has named only once the driver has said that it
   * has not taken them: else they may be in a commit entry, and the driver deletes what is not.
   */
  def abandon(): Unit = synchronized {
    val isUnnamed = current == Uploading || current.isInstanceOf[Complete]
    current = current match {
      case sealing: Sealing => sealing.copy(abandoned = true)
      case _ => Ended
    }
    if (isUnnamed) takeUploads() else Vector.empty
  }.foreach(_.discard())

  /** The task whose seal carried it was given up: it is unknown whether the driver has taken it. */
  def givenUp(): Unit = synchronized(current match {
    case _: Sealing => current = Ended
    case _ =>
  })

  /** Whether it may still come to be held. */
  def isUnderWay: Boolean = synchronized(current match {
    case Ended | Sealing(_, true) => false
    case _ => true
  })

  private def takeUploads(): Vector[PendingChunk] = {
    val all = uploading
    uploading = Vector.empty
    all
  }
}

object StoreSnapshot {
  private sealed trait State
  private case object Uploading extends State
  private final case class Complete(segments: Vector[SealedSegment]) extends State

  /** A seal carries it, and the driver has not answered. */
  private final case class Sealing(segments: Vector[SealedSegment], abandoned: Boolean) extends State

  /** The driver has taken a seal with it. */
  private case object Taken extends State
  private case object Ended extends State

  /** What is known of a snapshot after a seal of its store. */
  sealed trait Fate

  object Fate {
    case object Pending extends Fate

    /** A commit entry holds it. */
    case object Held extends Fate

    /** The driver will not take it: data files that it consists of may have been deleted. */
    final case class Missing(files: Set[String]) extends Fate
  }
}

/** A store whose changes a task seals, as far as its snapshots are concerned. */
trait SealedStore {

  /** What the seal of changes of `batch` is to carry beside them. */
  def carried(batch: Long): Vector[SealedSegment]

  /**
   * The driver has taken the changes.
   *
   * @param carried whether the seal carried a snapshot
   * @param notTaken if it did and the driver has not taken it, those of its data files that may be gone
   */
  def accepted(carried: Boolean, notTaken: Option[Vector[String]]): Unit

  /** The driver has refused a seal that carried a snapshot, and took nothing of it. */
  final def refused(): Unit = accepted(carried = true, Some(Vector.empty))

  /** The task was given up: it is unknown whether the driver has taken its seal. */
  def givenUp(): Unit
}
