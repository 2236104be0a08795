package sparkdstl.log.format

import java.util.UUID

import sparkdstl.log.SoftwareVersion

/** What a log file is for. */
sealed abstract class LogFileKind(val code: Int, val label: String)

object LogFileKind {

  /** The end of a commit entry: names every segment of the batch and holds the small ones. */
  case object Entry extends LogFileKind(1, "the log of a commit entry")

  /** Written by an executor: holds large segments; means nothing until a commit entry names it. */
  case object DataFile extends LogFileKind(2, "a data file")

  val all: Seq[LogFileKind] = Seq(Entry, DataFile)

  def fromCode(code: Int): Option[LogFileKind] = all.find(_.code == code)
}

/**
 * Bytes of a segment in a log file.
 *
 * @param file
 *   the data file that holds them, relative to the log's base path; None in an index means the log that the index
 *   belongs to
 * @param offset in bytes from the beginning of that log
 * @param length in bytes
 * @param crc
 *   CRC32C of the segment's name and these bytes, as [[Checksums.ofPart]] makes it: bytes of another segment do not
 *   have it, even where they are as many
 */
final case class SegmentPart(file: Option[String], offset: Long, length: Int, crc: Int)

/**
 * A segment and where its bytes are, in order.
 *
 * @param attempt the task attempt whose changes these are
 */
final case class SegmentEntry(key: SegmentKey, attempt: Long, parts: Vector[SegmentPart]) {

  /** In bytes. */
  def length: Long = parts.iterator.map(_.length.toLong).sum
}

/**
 * Who wrote a log file; named in the error that a driver gets when another one has committed its batch.
 *
 * @param epoch the run's number among all runs on the checkpoint
 */
final case class Writer(run: UUID, epoch: Long, host: String, application: String)

/**
 * Everything in a log file but the segments' bytes.
 *
 * @param batch the batch that a commit entry decides; None in a data file
 * @param link a commit entry's place in the chain of entries; None in a data file
 * @param name a data file's own name, relative to the log's base path; None in a commit entry
 * @param base a commit entry's base path, if one was configured: where its data files are
 * @param software the program that wrote the file and its version
 * @param snapshots a commit entry's list of snapshots; None in a data file
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
    snapshots: Option[SnapshotList] = None
) {

  /** Data files that hold parts of the segments. */
  def files: Set[String] = entries.iterator.flatMap(_.parts).flatMap(_.file).toSet

  /** Directories of the stores whose changes a commit entry holds. */
  def changedStores: Vector[String] =
    entries.iterator.map(_.key).filter(_.kind == SegmentKind.Changelog).map(_.storeDirectory).distinct.toVector
}

/** Sizes and marks of the file format; `docs/log-file-format.md` is the specification. */
object LogFile {
  val FormatVersion = 2
  val Software: String = s"spark-dstl ${SoftwareVersion.Current}"

  val HeaderMagic: Array[Byte] = "DSTLLOG\n".getBytes("US-ASCII")
  val TrailerMagic: Array[Byte] = "DSTLEND\n".getBytes("US-ASCII")
  val HeaderLength = 24
  val TrailerLength = 68

  /** Flags that this release understands, of those that a reader must understand. */
  private[format] val KnownRequiredFlags = 0

  /** Larger indexes are refused when reading: at 15 bytes a segment that is seventeen million segments in one batch. */
  val MaxIndexLength: Int = 256 * 1024 * 1024

  /**
   * An index never unpacks to more than so many times its stored size, so that a small file cannot ask for much memory.
   * One that compresses better is stored uncompressed.
   */
  val MaxIndexRatio = 64

  /** Largest commit entry that is read whole to distinguish a truncated one from one of stock Spark. */
  val MaxEntryWithoutTrailer: Long = 256L * 1024 * 1024
}
