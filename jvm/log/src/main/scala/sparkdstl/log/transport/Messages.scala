// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.transport

import java.util.UUID

import sparkdstl.log.error.{DstlException, FencedException}
import sparkdstl.log.format.{HeldSnapshot, SegmentKey, SegmentPart}

/** Identifies a run of a query on a checkpoint. `root` is the checkpoint's absolute directory. */
final case class RunId(root: String, run: UUID)

/** A part of a sealed segment. */
sealed trait SealedPart

object SealedPart {

  /** Bytes that the driver writes into the commit entry. */
  final case class Inline(bytes: Array[Byte]) extends SealedPart

  /** A durable part in a data file. */
  final case class Stored(part: SegmentPart) extends SealedPart

  /** A part that is being uploaded: the executor reports its end with this ticket. */
  final case class Pending(ticket: Long, length: Long) extends SealedPart
}

/**
 * A segment that a task has sealed. `base` is the task attempt whose commit produced the local state before the changes; None
 * if the state was read from storage or the attempt is unknown.
 */
final case class SealedSegment(key: SegmentKey, base: Option[Long], parts: Vector[SealedPart]) {

  /** Data files of its stored parts. */
  def files: Iterator[String] = parts.iterator.collect { case SealedPart.Stored(part) => part }.flatMap(_.file)
}

sealed trait ToDriver

object ToDriver {

  /** The executor starts working for the run. */
  case object Open extends ToDriver

  /**
   * The seal of a task attempt, with Spark's number of it, unique in an application, or a unique negative number for a segment
   * of a thread without a task. Idempotent. `carried` are finished snapshots of earlier versions of the attempt's stores, at
   * most one per store: the zip in Spark's terms, and its files, all durable or inline. The local state has passed through that
   * version, so the bases of later seals prove that it was committed.
   */
  final case class Seal(
      attempt: Long,
      batch: Long,
      segments: Vector[SealedSegment],
      carried: Vector[SealedSegment] = Vector.empty
  ) extends ToDriver

  /** Withdraws the seals of an attempt. Answered with [[FromDriver.Withdrawal]]. */
  final case class Withdraw(attempt: Long, batch: Long) extends ToDriver

  /** The ends of uploads by ticket: the part's place, or the reason of a failure. */
  final case class Uploaded(results: Vector[(Long, Either[String, SegmentPart])]) extends ToDriver

  /** Spark's retention needs no versions below these, by store directory. */
  final case class Release(lowest: Vector[(String, Long)]) extends ToDriver

  /** Requests the versions of a store in the log. Answered with [[FromDriver.Versions]]. */
  final case class ListStore(storeDirectory: String) extends ToDriver

  /** Reports to the operator that changes of this query bypass the log. */
  final case class Bypass(why: String) extends ToDriver
}

sealed trait FromDriver

object FromDriver {

  /**
   * The run is this driver's current one on the checkpoint. Tasks report their attempts in `accumulator`, and all tasks of a
   * stage may seal `inlineShare` inline bytes. `epoch` is the run's number among all runs on the checkpoint. `entryLengths` are
   * those of the log's entries, by batch.
   */
  final case class Opened(accumulator: Long, epoch: Long, inlineShare: Long, entryLengths: Map[Long, Long])
      extends FromDriver

  /** The driver coordinates no run on this checkpoint. */
  case object NotCoordinated extends FromDriver

  /** Another run has replaced this one. */
  case object Superseded extends FromDriver

  /**
   * The seal is accepted. `notTaken` are stores whose carried snapshots are not taken, with their data files that may be
   * deleted; without such files a later seal may carry the snapshot.
   */
  final case class Accepted(barrier: Option[BarrierReport], notTaken: Vector[(String, Vector[String])] = Vector.empty)
      extends FromDriver

  /** The driver has no memory for the inline bytes. The executor uploads them and seals again. */
  case object OverBudget extends FromDriver

  /** This send of the seal is refused; an earlier one may count. The local state of the `stale` stores must be loaded again. */
  final case class Refused(reason: String, stale: Vector[String]) extends FromDriver

  /** Whether the withdrawn seals may still be part of a commit, so that their uploads must not be deleted. */
  final case class Withdrawal(mayBeCommitted: Boolean) extends FromDriver

  /**
   * The versions of a store in the log, in ascending order, and the lowest retained one. The store may have plain files up to
   * version `plainUpTo`; 0 if there were never any.
   */
  final case class Versions(changelogs: Vector[Long], snapshots: Vector[SnapshotPlace], plainUpTo: Long, lowest: Long)
      extends FromDriver

  case object Noted extends FromDriver

  /** The seal never counts: a file that plans its batch was not written, with this error. */
  final case class NotPlanned(condition: String, text: String) extends FromDriver {
    def error: DstlException =
      if (condition == FencedException.Condition) new FencedException(text)
      else new DstlException(condition, Map.empty, text)
  }

  object NotPlanned {
    def of(error: Throwable): NotPlanned = error match {
      case named: DstlException => NotPlanned(named.condition, named.text)
      case other => NotPlanned("DSTL_WRITE_FAILED", s"A file that plans the batch was not written: $other.")
    }
  }

  /**
   * Reported uploads of unknown tickets that no commit names. The executor discards them; the driver cannot, because their
   * files may hold other chunks.
   */
  final case class Unwanted(tickets: Vector[Long]) extends FromDriver
}

/** A store's snapshot: its version, its state store checkpoint id, and the batch of the commit entry that holds it. */
final case class SnapshotPlace(version: Long, id: Option[String], batch: Long)

object SnapshotPlace {
  def of(held: HeldSnapshot): SnapshotPlace = SnapshotPlace(held.key.version, held.key.checkpointId, held.batch)
}

sealed trait ToExecutor

object ToExecutor {

  /** Requests the upload of all waiting chunks of the run. */
  case object Flush extends ToExecutor

  /** Reports that the attempt's local state of these stores was not committed and must not be used. */
  final case class Drop(attempt: Long, storeDirectories: Vector[String]) extends ToExecutor
}

/**
 * The report of a barrier.
 *
 * @param waitMillis from the end of the tasks until all segments were durable
 * @param writeMillis of the commit entry
 * @param entryBytes of the commit entry
 * @param logBytes size of the log with it, changes in data files included
 * @param snapshots that the entry is the first to hold
 * @param snapshotBytes written for these snapshots, without files that they share with earlier ones
 */
final case class BarrierReport(
    batch: Long,
    waitMillis: Long,
    writeMillis: Long,
    entryBytes: Long,
    inlineBytes: Long,
    uploadedBytes: Long,
    logBytes: Long,
    snapshotBytes: Long,
    segments: Int,
    snapshots: Int
)
