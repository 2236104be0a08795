package sparkdstl.log.format

import java.util.UUID

/** What a log file is for. */
sealed abstract class LogFileKind(val code: Int, val label: String)

object LogFileKind {

  /** Published by a batch's commit: names every segment of the batch and holds the small ones. */
  case object BatchLog extends LogFileKind(1, "batch log")

  /** Written by an executor: holds large segments; means nothing until a batch log names it. */
  case object DataFile extends LogFileKind(2, "data file")

  def fromCode(code: Int): Option[LogFileKind] = Seq(BatchLog, DataFile).find(_.code == code)
}

/**
 * Bytes of a segment in a log file.
 *
 * @param file   the log file that holds them, relative to the log's base path; `None` in an index means the file
 *               that the index belongs to
 * @param crc    CRC32C of the bytes
 */
final case class SegmentPart(file: Option[String], offset: Long, length: Int, crc: Int)

/** A segment and where its bytes are, in order. */
final case class SegmentEntry(key: SegmentKey, parts: Vector[SegmentPart]) {
  def length: Long = parts.iterator.map(_.length.toLong).sum
}

/** Who wrote a log file; named in the error that a driver gets when another one has committed its batch. */
final case class Writer(run: UUID, host: String, application: String)

/**
 * Everything in a log file but the segments' bytes.
 *
 * @param batch   the batch that a batch log belongs to; `None` in a data file
 * @param history which runs' batch logs count for the batches before; empty in a data file
 */
final case class LogFileIndex(
    kind: LogFileKind,
    writer: Writer,
    batch: Option[Long],
    history: RunHistory,
    entries: Vector[SegmentEntry]
)

/** Sizes and marks of the file format; `docs/log-file-format.md` is the specification. */
object LogFile {
  val FormatVersion = 1

  val HeaderMagic: Array[Byte] = "DSTLLOG\n".getBytes("US-ASCII")
  val TrailerMagic: Array[Byte] = "DSTLEND\n".getBytes("US-ASCII")
  val HeaderLength = 16
  val TrailerLength = 36

  /** Larger indexes are refused when reading: at 30 bytes an entry that is eight million segments in one batch. */
  val MaxIndexLength: Int = 256 * 1024 * 1024

  /**
   * An index never unpacks to more than so many times its stored size, so that a small file cannot ask for much memory.
   * One that compresses better is stored uncompressed.
   */
  val MaxIndexRatio = 64
}

/** Where the objects of a log lie, relative to its base path. */
object LogLayout {
  val BatchesDirectory = "batches"
  val DataDirectory = "data"
  private val BatchLogName = """(0|[1-9]\d{0,17})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.log""".r

  def batchLog(batch: Long, run: UUID): String = s"$BatchesDirectory/$batch-$run.log"

  def dataFile(run: UUID, executor: String, sequence: Long, attempt: Int, random: String): String =
    s"$DataDirectory/$run/$executor-$sequence-$attempt-$random.log"

  /** Batch and run of a batch log's file name (without directory), if it is one. */
  def parseBatchLog(fileName: String): Option[(Long, UUID)] = fileName match {
    case BatchLogName(batch, run) => Some((batch.toLong, UUID.fromString(run)))
    case _ => None
  }

  /** Whether a data file's path, as read from an index, stays inside the log's data directory. */
  def isDataFile(path: String): Boolean =
    path.split("/", -1) match {
      case Array(DataDirectory, names @ _*) =>
        names.size == 2 && !names.exists(name => name.isEmpty || name == "." || name == "..") &&
        !path.exists(c => c == ':' || c == '\\' || c.isControl)
      case _ => false
    }
}
