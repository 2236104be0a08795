package sparkdstl.log.read

import java.util.UUID

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogFileIndex, SegmentEntry, SegmentKey, SegmentPart}
import sparkdstl.log.storage.ObjectTail

/**
 * What is at the place of a commit entry.
 *
 * @param logged the entry, if it has a log
 * @param weight bytes in memory, roughly; None for an entry that is not there, because it may be written at any time
 */
sealed abstract class EntryFound(val logged: Option[LoadedEntry], val weight: Option[Long])

object EntryFound {

  /** Nothing: the batch is not committed, or its entry was deleted. */
  case object Absent extends EntryFound(None, None)

  /** An entry of stock Spark: what its batch changed is in plain files. */
  case object Plain extends EntryFound(None, Some(64L))

  final case class Logged(entry: LoadedEntry) extends EntryFound(Some(entry), Some(entry.weight))
}

/**
 * A commit entry with its index in memory.
 *
 * @param logStart where the log begins in the entry, in bytes
 * @param tail the entry's end, as far as it was fetched
 * @param lookup of its segments, where several stores are looked up
 */
final class LoadedEntry(
    val path: Path,
    val batch: Long,
    val index: LogFileIndex,
    val logStart: Long,
    tail: ObjectTail,
    lookup: Option[EntryLookup] = None
) {

  /** The same, with a lookup: the time to find one store's segments must not grow with the number of stores. */
  def withLookup: LoadedEntry = new LoadedEntry(path, batch, index, logStart, tail, Some(new EntryLookup(index)))

  /** Its own id, by which the next entry names it. */
  def id: Option[UUID] = index.link.map(_.entry)

  def segment(key: SegmentKey): Option[SegmentEntry] = segmentsOf(key.storeDirectory).find(_.key == key)

  /**
   * The file of a snapshot that Spark calls `name`: the store never uses the name again, so it does not matter for which
   * snapshot it was uploaded.
   */
  def snapshotFile(storeDirectory: String, name: String): Option[SegmentEntry] =
    segmentsOf(storeDirectory).find(_.key.snapshotFile.contains(name))

  /** All segments of a store. */
  def segmentsOf(storeDirectory: String): Vector[SegmentEntry] =
    lookup.fold(index.entries.filter(_.key.storeDirectory == storeDirectory))(
      _.byStore.getOrElse(storeDirectory, Vector.empty)
    )

  /** Bytes of the log from `offset` on, if they were fetched. */
  def bytes(offset: Long, length: Int): Option[Array[Byte]] = {
    val start = logStart + offset - (tail.length - tail.bytes.length)
    Option.when(start >= 0 && start + length <= tail.bytes.length)(
      java.util.Arrays.copyOfRange(tail.bytes, start.toInt, start.toInt + length)
    )
  }

  /** The range that is read instead of `part`, because several parts share it. */
  def rangeAround(part: SegmentPart): Option[FileRange] = lookup.flatMap(_.ranges.get(part))

  /** Roughly its size in memory, in bytes. */
  def weight: Long = tail.bytes.length + 256L + index.entries.size * 500L
}

/** Finds segments of an index by store, and the ranges that several parts share. */
final class EntryLookup(index: LogFileIndex) {
  private[read] val byStore: Map[String, Vector[SegmentEntry]] = index.entries.groupBy(_.key.storeDirectory)
  private[read] val ranges: Map[SegmentPart, FileRange] = FileRange.shared(index.entries.flatMap(_.parts))
}
