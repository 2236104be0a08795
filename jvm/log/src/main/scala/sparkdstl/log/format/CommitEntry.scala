package sparkdstl.log.format

import java.util.UUID

import org.apache.hadoop.fs.Path

import sparkdstl.log.storage.{ObjectTail, Payload}

/**
 * A commit entry's place in the chain of commit entries.
 *
 * @param entry
 *   of this entry; no two entries that were ever written have the same
 * @param previous
 *   of the entry that it was built on; None for a first batch, and after an entry of stock Spark
 */
final case class EntryLink(entry: UUID, previous: Option[UUID])

/**
 * A segment as a commit entry is to carry it: bytes to be stored in the entry itself, or places in data files.
 *
 * @param attempt
 *   the task attempt whose changes these are
 */
final case class CommittedSegment(key: SegmentKey, attempt: Long, parts: Vector[Either[Array[Byte], SegmentPart]])

/** A commit entry ready to be written. */
final case class EncodedEntry(payload: Payload, index: LogFileIndex)

/** Reads and writes commit entries: Spark's two lines, a note for people, padding, and the batch's log file. */
object CommitEntry {

  /**
   * @param sparkContent
   *   the entry as Spark wrote it
   * @param base
   *   the log's base path if one was configured
   */
  def encode(
      sparkContent: Array[Byte],
      batch: Long,
      link: EntryLink,
      writer: Writer,
      base: Option[String],
      segments: Vector[CommittedSegment]
  ): EncodedEntry = ???

  /** The id of the entry, from its end; None if it carries no log (stock Spark wrote it). */
  def entryId(entry: Path, tail: ObjectTail): Option[UUID] = ???

  /**
   * What must be read to know the entry's index, given its end.
   *
   * @throws sparkdstl.log.error.DstlException
   *   if the entry is damaged, or needs a newer release
   */
  def inspect(entry: Path, tail: ObjectTail): EntryInspection = ???

  /** The state store checkpoint ids that Spark's second line names: operator, partition, id. */
  def checkpointIds(entry: Path, sparkContent: Array[Byte]): Seq[(Long, Int, String)] = ???
}

/** What the end of a commit entry tells. */
sealed trait EntryInspection

object EntryInspection {

  /** Stock Spark wrote it: its batch's changelogs are plain files. */
  case object Plain extends EntryInspection

  /** The index, of which nothing is missing. Offsets of parts in the entry itself are counted from `logStart`. */
  final case class Whole(index: LogFileIndex, logStart: Long) extends EntryInspection

  /** The index is longer than the tail: so many bytes from the object's end are needed. */
  final case class NeedsTail(length: Int) extends EntryInspection
}
