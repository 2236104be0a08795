// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import sparkdstl.log.transport.SealedSegment
import sparkdstl.log.upload.PendingChunk

/**
 * The life of one snapshot of a store: it is uploaded in the background, then carried by seals of the store's next versions
 * until the driver takes it, and held after the driver has accepted a later seal of the same local state.
 *
 * The driver verifies the base of the changes in a seal. So the accepted seal that carries the snapshot proves that its version
 * was committed, and the next accepted seal proves that the entry with the snapshot exists. The snapshot is abandoned when the
 * store is loaded from storage. Thread-safe.
 *
 * @param version that it is a snapshot of
 */
final class StoreSnapshot(val version: Long) {
  import StoreSnapshot._

  // Guarded by this.
  private var current: State = Uploading
  private var uploading = Vector.empty[PendingChunk]

  /** Adds a chunk that is being uploaded. It is discarded unless a seal names it. */
  def uploads(chunk: PendingChunk): Unit = {
    val isUnwanted = synchronized {
      if (current == Uploading) uploading :+= chunk
      current != Uploading
    }
    if (isUnwanted) chunk.discard()
  }

  /** Ends the upload: all segments are durable or inline. */
  def complete(segments: Vector[SealedSegment]): Unit = synchronized {
    if (current == Uploading) current = Complete(segments)
  }

  /**
   * The segments for the seal of `batch`; none during the upload, after the driver has taken them, and for the batch of the
   * snapshot's version itself.
   */
  def carry(batch: Long): Vector[SealedSegment] = synchronized(current match {
    case Complete(segments) if version <= batch =>
      current = Sealing(segments, abandoned = false)
      segments
    case _ => Vector.empty
  })

  /**
   * Records that the driver has accepted a seal of the store. `notTaken` is None if the driver took the carried snapshot; else
   * its data files that may be deleted, or no files if a later seal may carry it.
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

  /** Restarts the upload from the beginning. */
  def restart(): Unit = synchronized {
    if (current == Uploading) takeUploads() else Vector.empty
  }.foreach(_.discard())

  /**
   * Abandons the snapshot and discards its uploads. If a seal has named them, they are discarded only after the driver has
   * answered that it has not taken them; otherwise a commit entry may name them, and the driver's retention deletes them.
   */
  def abandon(): Unit = synchronized {
    val isUnnamed = current == Uploading || current.isInstanceOf[Complete]
    current = current match {
      case sealing: Sealing => sealing.copy(abandoned = true)
      case _ => Ended
    }
    if (isUnnamed) takeUploads() else Vector.empty
  }.foreach(_.discard())

  /** Ends the snapshot because the task whose seal carried it was given up: it is unknown whether the driver has taken it. */
  def givenUp(): Unit = synchronized(current match {
    case _: Sealing => current = Ended
    case _ =>
  })

  /** Whether it may still be held by an entry. */
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

  /** A seal carries it, but the driver has not answered. */
  private final case class Sealing(segments: Vector[SealedSegment], abandoned: Boolean) extends State

  /** The driver has taken it with a seal. */
  private case object Taken extends State
  private case object Ended extends State

  /** The outcome of a seal for a snapshot. */
  sealed trait Fate

  object Fate {
    case object Pending extends Fate

    /** A commit entry holds it. */
    case object Held extends Fate

    /** The driver refuses it: data files of it may have been deleted. */
    final case class Missing(files: Set[String]) extends Fate
  }
}

/** A store whose snapshots are carried by the seals of a task. */
trait SealedStore {

  /** The snapshot segments for the seal of `batch`. */
  def carried(batch: Long): Vector[SealedSegment]

  /** Reports that the driver has accepted the seal; with the data files of a carried snapshot that it has not taken. */
  def accepted(carried: Boolean, notTaken: Option[Vector[String]]): Unit

  /** Reports that the driver has refused a seal with a snapshot. */
  final def refused(): Unit = accepted(carried = true, Some(Vector.empty))

  /** Reports that the task was given up: it is unknown whether the driver has accepted its seal. */
  def givenUp(): Unit
}
