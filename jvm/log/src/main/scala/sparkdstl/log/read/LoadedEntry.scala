// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.util.UUID

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogFileIndex, SegmentEntry, SegmentKey, SegmentPart}
import sparkdstl.log.storage.ObjectTail

/**
 * The result of reading a commit entry: an entry with a log, and approximate bytes in memory. A missing entry has no weight,
 * because it may be created at any time.
 */
sealed abstract class EntryFound(val logged: Option[LoadedEntry], val weight: Option[Long])

object EntryFound {

  /** No entry: the batch is not committed, or its entry was deleted. */
  case object Absent extends EntryFound(None, None)

  /** An entry of stock Spark: the changes of its batch are in plain files. */
  case object Plain extends EntryFound(None, Some(64L))

  final case class Logged(entry: LoadedEntry) extends EntryFound(Some(entry), Some(entry.weight))
}

/**
 * A commit entry with its index in memory, the fetched end of the entry, and a lookup of its segments, made when it is needed.
 * The log starts at `logStart`.
 */
final class LoadedEntry(
    val path: Path,
    val batch: Long,
    val index: LogFileIndex,
    val logStart: Long,
    tail: ObjectTail
) {

  // So that the time to find a store's segments does not grow with the number of stores.
  private lazy val byStore: Map[String, Vector[SegmentEntry]] = index.entries.groupBy(_.key.storeDirectory)
  private lazy val ranges: Map[SegmentPart, FileRange] = FileRange.shared(index.entries.flatMap(_.parts))

  /** Its id, which the next entry names. */
  def id: Option[UUID] = index.link.map(_.entry)

  /** The entry's bytes, if all were fetched. */
  def content: Option[Array[Byte]] = Option.when(tail.isWhole)(tail.bytes)

  def segment(key: SegmentKey): Option[SegmentEntry] = segmentsOf(key.storeDirectory).find(_.key == key)

  /**
   * The file of a snapshot with Spark's `name`. A store never reuses a name, so the result does not depend on the snapshot for
   * which the file was uploaded.
   */
  def snapshotFile(storeDirectory: String, name: String): Option[SegmentEntry] =
    segmentsOf(storeDirectory).find(_.key.snapshotFile.contains(name))

  def segmentsOf(storeDirectory: String): Vector[SegmentEntry] = byStore.getOrElse(storeDirectory, Vector.empty)

  /** Bytes of the log from `offset`, if they were fetched. */
  def bytes(offset: Long, length: Int): Option[Array[Byte]] = {
    val start = logStart + offset - (tail.length - tail.bytes.length)
    Option.when(start >= 0 && start + length <= tail.bytes.length)(
      java.util.Arrays.copyOfRange(tail.bytes, start.toInt, start.toInt + length)
    )
  }

  /** The shared range that is read instead of `part`. */
  def rangeAround(part: SegmentPart): Option[FileRange] = ranges.get(part)

  /** Its approximate size in memory, in bytes. */
  def weight: Long =
    tail.bytes.length + 256L + index.entries.size * 500L + index.snapshots.fold(0)(_.held.size) * 250L
}
