package sparkdstl.log.transport

import java.util.UUID

import sparkdstl.log.format.{HeldSnapshot, SegmentKey, SegmentPart}

/** A query's run on a checkpoint, as messages name it. `root` is the checkpoint's directory, made absolute. */
final case class RunId(root: String, run: UUID)

/** A part of a sealed segment, as the executor knows it. */
sealed trait SealedPart {
  def length: Long
}

object SealedPart {

  /** The bytes themselves: the driver writes them into the commit entry. */
  final case class Inline(bytes: Array[Byte]) extends SealedPart {
    override def length: Long = bytes.length.toLong
  }

  /** Already durable in a data file. */
  final case class Stored(part: SegmentPart) extends SealedPart {
    override def length: Long = part.length.toLong
  }

  /** On its way: the executor will report under this ticket. */
  final case class Pending(ticket: Long, length: Long) extends SealedPart
}

/**
 * A segment that a task has sealed.
 *
 * @param base
 *   the task attempt whose commit left the local state that these changes are based on; None if that state was read
 *   from storage, or if it is unknown
 */
final case class SealedSegment(key: SegmentKey, base: Option[Long], parts: Vector[SealedPart]) {

  /** Data files that are known to hold some of it. */
  def files: Iterator[String] = parts.iterator.collect { case SealedPart.Stored(part) => part }.flatMap(_.file)
}

/** From an executor to the driver. */
sealed trait ToDriver

object ToDriver {

  /** The executor starts working for the run. */
  case object Open extends ToDriver

  /**
   * Everything that one task attempt has sealed. Sending it again changes nothing.
   *
   * @param attempt
   *   Spark's number of the task attempt, unique in an application; a negative number of its own where a thread without
   *   a task has sealed a single segment
   * @param carried
   *   finished snapshots of earlier versions of the attempt's stores, at most one of each: what Spark calls a snapshot's zip, and
   *   the files that it consists of, all of them durable or inline. The local state has passed through that version, so the
   *   bases of the seals since prove that it was committed
   */
  final case class Seal(
      attempt: Long,
      batch: Long,
      segments: Vector[SealedSegment],
      carried: Vector[SealedSegment] = Vector.empty
  ) extends ToDriver

  /** What the attempt has sealed, or may have, does not count. Answered with [[FromDriver.Withdrawal]]. */
  final case class Withdraw(attempt: Long, batch: Long) extends ToDriver

  /** How uploads ended: by ticket, where the part is, or why it failed. */
  final case class Uploaded(results: Vector[(Long, Either[String, SegmentPart])]) extends ToDriver

  /** Spark's retention no longer needs what is below these versions, by store directory. */
  final case class Release(lowest: Vector[(String, Long)]) extends ToDriver

  /** Which versions of a store are in the log. */
  final case class ListStore(storeDirectory: String) extends ToDriver

  /** Changes of this query bypass the log, and why: for the operator, once. */
  final case class Bypass(why: String) extends ToDriver
}

/** The driver's answers. */
sealed trait FromDriver

object FromDriver {

  /**
   * The run is this driver's current one on the checkpoint.
   *
   * @param accumulator of the accumulator in which tasks name their attempts to Spark
   * @param epoch the run's number among all runs on the checkpoint
   * @param inlineShare how many inline bytes a stage may seal in all
   */
  final case class Opened(accumulator: Long, epoch: Long, inlineShare: Long) extends FromDriver

  /** The driver coordinates no run on this checkpoint. */
  case object NotCoordinated extends FromDriver

  /** Another run has taken the checkpoint over. */
  case object Superseded extends FromDriver

  /**
   * The seals are taken.
   *
   * @param barrier how the newest barrier went
   * @param notTaken
   *   stores whose carried snapshots are not taken, with the data files of these that may be gone; without such files the
   *   snapshot may come with a later seal
   */
  final case class Accepted(barrier: Option[BarrierReport], notTaken: Vector[(String, Vector[String])] = Vector.empty)
      extends FromDriver

  /** The driver has no memory for the inline bytes: upload them and seal again. */
  case object OverBudget extends FromDriver

  /**
   * The seals are not taken, and never will be.
   *
   * @param stale directories of the stores whose local state is not what was committed: to be loaded again
   */
  final case class Refused(reason: String, stale: Vector[String]) extends FromDriver

  /** Whether the withdrawn seals may still be part of a commit: then what they name must not be deleted. */
  final case class Withdrawal(mayBeCommitted: Boolean) extends FromDriver

  /**
   * What of a store is in the log.
   *
   * @param changelogs versions whose changelogs are, in ascending order
   * @param snapshots where its snapshots are, in ascending order of versions
   * @param plainUpTo above this version there are no plain files of it; 0 if there never were any
   * @param lowest the lowest version that is retained
   */
  final case class Versions(changelogs: Vector[Long], snapshots: Vector[SnapshotPlace], plainUpTo: Long, lowest: Long)
      extends FromDriver

  case object Noted extends FromDriver

  /**
   * Of the uploads that were reported, these are unknown, and no commit names them: the executor discards them. The driver
   * cannot, because it does not know what else is in their files.
   */
  final case class Unwanted(tickets: Vector[Long]) extends FromDriver
}

/**
 * Where a snapshot of a store is.
 *
 * @param id the state store checkpoint id, if there is one
 * @param batch of the commit entry that holds it
 */
final case class SnapshotPlace(version: Long, id: Option[String], batch: Long)

object SnapshotPlace {
  def of(held: HeldSnapshot): SnapshotPlace = SnapshotPlace(held.key.version, held.key.checkpointId, held.batch)
}

/** From the driver to an executor. */
sealed trait ToExecutor

object ToExecutor {

  /** Upload whatever waits for this run, at once. */
  case object Flush extends ToExecutor

  /** The attempt's local state of these stores was not committed: do not build on it. */
  final case class Drop(attempt: Long, storeDirectories: Vector[String]) extends ToExecutor
}

/**
 * How a barrier went.
 *
 * @param waitMillis from the end of the tasks until everything sealed was durable
 * @param writeMillis for the commit entry
 * @param entryBytes of the commit entry
 * @param logBytes how large the log is with it, changes in data files included
 * @param snapshots of stores, that the entry was the first to hold
 * @param snapshotBytes that were written for these; what they share with earlier ones is not among them
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
