// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.util.UUID

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.storage.{ObjectTail, Payload}

/**
 * A commit entry's unique id, and that of the entry that it was built on; None for a first batch and after an entry of stock
 * Spark.
 */
final case class EntryLink(entry: UUID, previous: Option[UUID])

/** A segment that a task attempt wrote, for a commit entry. Its parts are inline bytes or places in data files. */
final case class CommittedSegment(key: SegmentKey, attempt: Long, parts: Vector[Either[Array[Byte], SegmentPart]])

/** A commit entry ready to be written. */
final case class EncodedEntry(payload: Payload, index: LogFileIndex)

/**
 * Reads and writes commit entries: Spark's two lines, a note for people, padding, and the batch's log.
 *
 * The reader uses the part before the log only to distinguish a truncated entry from one of stock Spark.
 */
object CommitEntry {

  /**
   * Encodes an entry, and sorts its segments. `base` is the log's base path if one was configured, `offsets` the checksum of
   * the batch's entry in `offsets`, if it is known, and `needsLog` whether the state needs the log without these segments, too.
   * Inline bytes are not copied and must not be changed.
   */
  def encode(
      sparkContent: Array[Byte],
      batch: Long,
      link: EntryLink,
      writer: Writer,
      base: Option[String],
      segments: Vector[CommittedSegment],
      snapshots: Option[SnapshotList] = None,
      offsets: Option[Int] = None,
      needsLog: Boolean = false
  ): EncodedEntry = {
    val before = SparkEntry.withNote(sparkContent, batch, link, writer, base, needsLog || segments.nonEmpty)
    val log = new LogFileWriter(LogFileKind.Entry)
    val entries = segments.sortBy(segment => place(segment.key)).map { segment =>
      SegmentEntry(segment.key, segment.attempt, segment.parts.map(_.fold(log.append(segment.key, _), identity)))
    }
    val index = LogFileIndex(
      LogFileKind.Entry,
      writer,
      Some(batch),
      Some(link),
      entries,
      base = base,
      snapshots = snapshots,
      spark = Some(SparkChecksums(Checksums.of(before), offsets))
    )
    EncodedEntry(Payload(before +: log.finish(index).parts), index)
  }

  /** The sort order of segments. Neighbours have most fields in common, so that the index is short. */
  private def place(key: SegmentKey): (Long, String, Int, Int, Long, Option[String]) =
    (key.operator, key.storeName, key.kind.code, key.partition, key.version, key.qualifier)

  /**
   * The id of the entry, from its end; None if the end has no log: stock Spark wrote the entry, or it is truncated.
   * [[inspect]] distinguishes the two. Fails if the end is damaged or needs a later release.
   */
  def entryId(entry: Path, tail: ObjectTail): Option[UUID] =
    Option.when(LogFileReader.endsInTrailer(tail.bytes)) {
      val trailer = LogFileReader.readTrailer(entry, tail)
      if (trailer.kindCode != LogFileKind.Entry.code)
        throw LogErrors.damaged(entry, 0, s"it is not ${LogFileKind.Entry.label}")
      trailer.entry
    }

  /** Whether the state after the entry needs changes in the log, as its beginning says; `content` is all of it or its beginning. */
  def needsLog(content: Array[Byte]): Boolean = SparkEntry.hasGuard(content)

  /** The beginning of an entry as Spark can read it; see [[SparkEntry.withoutGuard]]. */
  def forSpark(beginning: Array[Byte]): Array[Byte] = SparkEntry.withoutGuard(beginning)

  /** The offsets in the commit entry of a repartition; see [[SparkEntry.offsetsOfRepartition]]. */
  def offsetsOfRepartition(content: Array[Byte]): Option[Array[Byte]] = SparkEntry.offsetsOfRepartition(content)

  /**
   * Reads the index from the entry's end, and checks Spark's lines if they are there. Fails if it is damaged, of another batch or
   * of a later format.
   */
  def inspect(entry: Path, tail: ObjectTail): EntryInspection =
    if (!LogFileReader.endsInTrailer(tail.bytes)) withoutTrailer(entry, tail)
    else {
      val trailer = LogFileReader.readTrailer(entry, tail)
      LogFileReader.readIndex(entry, LogFileKind.Entry, trailer, tail) match {
        case Left(length) => EntryInspection.NeedsTail(length)
        case Right(index) =>
          val logStart = tail.length - trailer.logLength
          checkName(entry, logStart + trailer.indexOffset, index)
          if (tail.isWhole) checkBeforeLog(entry, tail.bytes, logStart.toInt, index)
          EntryInspection.Whole(index, logStart)
      }
    }

  private def checkBeforeLog(entry: Path, bytes: Array[Byte], logStart: Int, index: LogFileIndex): Unit =
    index.spark.filter(_.beforeLog != Checksums.of(bytes, 0, logStart)).foreach { _ =>
      throw LogErrors.damaged(entry, 0, "Spark's lines, or the note after them, are not what was written")
    }

  private def withoutTrailer(entry: Path, tail: ObjectTail): EntryInspection =
    if (tail.isWhole) {
      if (SparkEntry.hadLog(tail.bytes))
        throw LogErrors.damaged(entry, tail.length, "it does not end in a trailer: it was cut off")
      if (!SparkEntry.hasLines(tail.bytes))
        throw LogErrors.damaged(entry, tail.length, "it ends before Spark's second line: it was emptied or cut off")
      EntryInspection.Plain
    } else if (tail.length <= LogFile.MaxEntryWithoutTrailer) EntryInspection.NeedsTail(tail.length.toInt)
    else throw LogErrors.tooLarge(entry, tail.length, LogFile.MaxEntryWithoutTrailer)

  private def checkName(entry: Path, offset: Long, index: LogFileIndex): Unit =
    if (index.batch != LogLayout.parseBatch(entry.getName))
      throw LogErrors.damaged(
        entry,
        offset,
        s"it is the entry of batch ${index.batch.getOrElse("none")}, not of the batch in its name"
      )
}

/** The result of [[CommitEntry.inspect]]. */
sealed trait EntryInspection

object EntryInspection {

  /** An entry of stock Spark: the changelogs of its batch are plain files. */
  case object Plain extends EntryInspection

  /** The whole index. Offsets of inline parts are relative to `logStart`. */
  final case class Whole(index: LogFileIndex, logStart: Long) extends EntryInspection

  /** The index is longer than the tail: the reader needs `length` bytes from the object's end. */
  final case class NeedsTail(length: Int) extends EntryInspection
}
