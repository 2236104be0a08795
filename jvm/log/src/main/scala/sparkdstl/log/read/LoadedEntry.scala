package sparkdstl.log.read

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogFileIndex, SegmentEntry, SegmentKey, SegmentPart}
import sparkdstl.log.storage.ObjectTail

/** What is at the place of a commit entry. */
sealed trait EntryFound

object EntryFound {

  /** Roughly what it takes to know that an entry has no log, in bytes. */
  private val PlainWeight = 64L

  /** Bytes in memory; None of an entry that is not there, because it may be written at any time. */
  def weight(found: EntryFound): Option[Long] = found match {
    case Logged(entry) => Some(entry.weight)
    case Plain => Some(PlainWeight)
    case Absent => None
  }

  /** Nothing: the batch is not committed, or its entry is gone. */
  case object Absent extends EntryFound

  /** An entry of stock Spark: what its batch changed is in plain files. */
  case object Plain extends EntryFound

  final case class Logged(entry: LoadedEntry) extends EntryFound
}

/**
 * A commit entry with its index in memory.
 *
 * @param logStart
 *   where the log begins in the entry, in bytes
 * @param tail
 *   the entry's end, as far as it was fetched
 */
final class LoadedEntry(
    val path: Path,
    val batch: Long,
    val index: LogFileIndex,
    val logStart: Long,
    tail: ObjectTail
) {

  // By store directory: listing what there is of one store must not cost as much as there are stores.
  private lazy val segments: Map[String, Vector[SegmentEntry]] = index.entries.groupBy(_.key.storeDirectory)

  private lazy val ranges: Map[SegmentPart, FileRange] = FileRange.shared(index.entries.flatMap(_.parts))

  def segment(key: SegmentKey): Option[SegmentEntry] = segmentsOf(key.storeDirectory).find(_.key == key)

  /**
   * The file of a snapshot that Spark calls `name`: the store's name for it never comes again, so it does not matter for
   * which snapshot it was uploaded.
   */
  def snapshotFile(storeDirectory: String, name: String): Option[SegmentEntry] =
    segmentsOf(storeDirectory).find(_.key.snapshotFile.contains(name))

  /** All segments of a store. */
  def segmentsOf(storeDirectory: String): Vector[SegmentEntry] = segments.getOrElse(storeDirectory, Vector.empty)

  /** Bytes of the log from `offset` on, if they were fetched. */
  def bytes(offset: Long, length: Int): Option[Array[Byte]] = {
    val start = logStart + offset - (tail.length - tail.bytes.length)
    Option.when(start >= 0 && start + length <= tail.bytes.length)(
      java.util.Arrays.copyOfRange(tail.bytes, start.toInt, start.toInt + length)
    )
  }

  /** The range that is best read for the sake of `part`; None if that is the part alone. */
  def rangeAround(part: SegmentPart): Option[FileRange] = ranges.get(part)

  /** Directories of the stores that its batch has changed. */
  def changedStores: Set[String] = index.changedStores

  /** Roughly what it takes in memory, in bytes. */
  def weight: Long = tail.bytes.length + 256L + index.entries.size * 500L

  /** Data files that hold parts of its segments, relative to the base. */
  def files: Set[String] = index.entries.iterator.flatMap(_.parts).flatMap(_.file).toSet
}
