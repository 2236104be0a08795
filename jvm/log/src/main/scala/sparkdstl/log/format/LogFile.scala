// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.util.UUID

import sparkdstl.log.SoftwareVersion

/** The kind of a log file. */
sealed abstract class LogFileKind(val code: Int, val label: String)

object LogFileKind {

  /** The end of a commit entry, which names every segment of the batch and holds the small ones. */
  case object Entry extends LogFileKind(1, "the log of a commit entry")

  /** A file that an executor uploads for large segments. It counts only if a commit entry names it. */
  case object DataFile extends LogFileKind(2, "a data file")

  val all: Seq[LogFileKind] = Seq(Entry, DataFile)
  def fromCode(code: Int): Option[LogFileKind] = all.find(_.code == code)
}

/**
 * Bytes of a segment in a log file, at an offset from the beginning of the log. `file` is the data file relative to the log's
 * base path; None in an index for the log of that index. `crc` is [[Checksums.ofPart]], so that bytes of another segment are
 * detected.
 */
final case class SegmentPart(file: Option[String], offset: Long, length: Int, crc: Int)

/** A segment that a task attempt wrote, and the places of its bytes, in order. */
final case class SegmentEntry(key: SegmentKey, attempt: Long, parts: Vector[SegmentPart]) {

  def length: Long = parts.iterator.map(_.length.toLong).sum
}

/** The run that wrote a log file; the error of a fenced driver names it. `epoch` is its number on the checkpoint. */
final case class Writer(run: UUID, epoch: Long, host: String, application: String)

/**
 * Checksums of what Spark wrote for a batch: of all bytes of its commit entry before the log, and of its entry in `offsets`; None
 * if the writer did not know that.
 */
final case class SparkChecksums(beforeLog: Int, offsets: Option[Int])

/**
 * The contents of a log file without the segments' bytes.
 *
 * @param batch the batch of a commit entry; None in a data file
 * @param link a commit entry's place in the chain of entries; None in a data file
 * @param name a data file's own name, relative to the log's base path; None in a commit entry
 * @param base a commit entry's base path for data files, if one was configured
 * @param software program and version that wrote the file
 * @param snapshots a commit entry's list of snapshots; None in a data file
 * @param spark a commit entry's checksums of what Spark wrote; None in a data file
 */
final case class LogFileIndex(
    kind: LogFileKind,
    writer: Writer,
    batch: Option[Long],
    link: Option[EntryLink],
    entries: Vector[SegmentEntry],
    name: Option[String] = None,
    base: Option[String] = None,
    software: String = LogFile.Software,
    snapshots: Option[SnapshotList] = None,
    spark: Option[SparkChecksums] = None
) {

  def files: Set[String] = entries.iterator.flatMap(_.parts).flatMap(_.file).toSet

  /** Directories of the stores whose changes are in the entry. */
  def changedStores: Vector[String] =
    entries.iterator.map(_.key).filter(_.kind == SegmentKind.Changelog).map(_.storeDirectory).distinct.toVector
}

/** Constants of the file format; `docs/log-file-format.md` is the specification. */
object LogFile {
  val FormatVersion = 2
  val Software: String = s"spark-dstl ${SoftwareVersion.Current}"

  val HeaderMagic: Array[Byte] = "DSTLLOG\n".getBytes("US-ASCII")
  val TrailerMagic: Array[Byte] = "DSTLEND\n".getBytes("US-ASCII")
  val HeaderLength = 24
  val TrailerLength = 68

  /** The required flags that this release supports. */
  private[format] val KnownRequiredFlags = 0

  /** Readers refuse larger indexes. At 15 bytes per segment this is enough for seventeen million segments in a batch. */
  val MaxIndexLength: Int = 256 * 1024 * 1024

  /**
   * Readers refuse an index that unpacks to more than this multiple of its stored size, so that a small file cannot make them
   * allocate much memory. Writers store an index that compresses better uncompressed.
   */
  val MaxIndexRatio = 64

  /** The maximum size of a commit entry that is read whole to distinguish a truncated entry from one of stock Spark. */
  val MaxEntryWithoutTrailer: Long = 256L * 1024 * 1024
}
