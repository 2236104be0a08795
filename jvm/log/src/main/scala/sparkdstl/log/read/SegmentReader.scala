// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.io.{IOException, InputStream}
import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.{DamagedLogException, LogErrors, ProtocolErrors}
import sparkdstl.log.format.{EntryLink, LogFileReader, SegmentEntry, SegmentKey, SegmentKind, SnapshotList}
import sparkdstl.log.request.{QueryStorage, StorageClient}
import sparkdstl.log.storage.StorageErrors
import sparkdstl.log.storage.StorageOperation.ReadRange

/** A cache key of data that is read once for all stores of an executor. */
sealed trait ReadPlace

/** A commit entry as read by one reader: after a rollback another run commits the same batch again. */
final case class EntryPlace(root: String, reader: UUID, batch: Long) extends ReadPlace

/** A part of a data file below the base `of`, or of the commit entry with the id `of`. */
final case class RangePlace(of: String, range: FileRange) extends ReadPlace

final case class FoundSegment(in: LoadedEntry, segment: SegmentEntry)

/**
 * Finds and reads segments. Verifies all bytes before it returns them. All readers of a process may share `cache` and `ranges`;
 * `reader` is the id of the run or scan, which does not share cached entries with others.
 */
final class SegmentReader(
    storage: QueryStorage,
    entries: EntryReader,
    cache: MemoryCache[EntryPlace, EntryFound],
    ranges: SharedRanges,
    reader: UUID
) {
  private final val RememberedLinks = 1024
  import storage.{checkpoint, location, log, timeoutMillis}
  private implicit val executor: ExecutionContext = storage.runtime.executor

  // Links of the last read entries. Guarded by this.
  private val seen = mutable.LinkedHashMap.empty[Long, EntryLink]

  /** Finds a segment; None if it is not in the log. */
  def find(key: SegmentKey): Future[Option[FoundSegment]] =
    if (key.batch < 0) Future.successful(None) else held(key, key.batch)

  /**
   * Finds a segment for reading; None if it can only be a plain file, because its batch is not in the log.
   *
   * Fails if the batch is in the log but lacks the store: an existing plain file belongs to another attempt.
   */
  def open(key: SegmentKey): Future[Option[FoundSegment]] =
    if (key.batch < 0) Future.successful(None)
    else entry(key.batch).map(_.logged.flatMap { entry =>
      val found = entry.segment(key).map(FoundSegment(entry, _))
      val changelogs = entry.index.entries.iterator.map(_.key).filter(_.kind == SegmentKind.Changelog)
      // An entry of the other version of Spark's checkpoint format cannot have the segment.
      val isExpected = key.kind == SegmentKind.Changelog &&
        changelogs.exists(_.checkpointId.isDefined == key.checkpointId.isDefined)
      if (found.isEmpty && isExpected)
        throw LogErrors.damaged(entry.path, 0, s"its log lacks ${key.relativePath}")
      found
    })

  /** The error for a changelog that is not a plain file either; it names the entry that lacks it. */
  def explainMissing(key: SegmentKey): Future[Throwable] = entry(key.batch).map { found =>
    val path = location.entry(key.batch)
    if (found == EntryFound.Absent) LogErrors.missingEntry(path, key.relativePath)
    // An entry of the same format that lacks a store's changelog is refused when it is opened.
    else if (found.logged.exists(_.index.changedStores.nonEmpty))
      LogErrors.readInOtherFormat(path, key.relativePath, if (key.checkpointId.isDefined) 1 else 2)
    else LogErrors.entryWithoutLog(path, key.relativePath)
  }

  /** The segments of a store in the entry of `batch`. */
  def segmentsOf(storeDirectory: String, batch: Long): Future[Vector[SegmentEntry]] =
    entry(batch).map(_.logged.fold(Vector.empty[SegmentEntry])(_.segmentsOf(storeDirectory)))

  /** The segments of a store in all existing entries, of these kinds. For snapshots, [[snapshots]] reads fewer entries. */
  def allSegmentsOf(storeDirectory: String, kinds: Set[SegmentKind]): Future[Vector[SegmentEntry]] =
    for {
      batches <- storage.batches()
      segments <- batches.foldLeft(Future.successful(Vector.empty[SegmentEntry])) { (before, batch) =>
        before.flatMap(found => segmentsOf(storeDirectory, batch).map(found ++ _))
      }
    } yield segments.filter(segment => kinds(segment.key.kind))

  /** The snapshots in all existing entries, from one or two of them. */
  def snapshots(): Future[SnapshotList] = storage.batches().flatMap(SnapshotLists.of(_)(entry))

  /** Directories of the stores that the newest batch has changed; none if the changes are not in the log. */
  def newestStores(): Future[Set[String]] = storage.batches().flatMap {
    case batches if batches.isEmpty => Future.successful(Set.empty)
    case batches => entry(batches.last).map(_.logged.fold(Set.empty[String])(_.index.changedStores.toSet))
  }

  /** A snapshot's zip or file in the entry of `batch`. */
  def held(key: SegmentKey, batch: Long): Future[Option[FoundSegment]] =
    entry(batch).map(found =>
      for (entry <- found.logged; segment <- entry.segment(key)) yield FoundSegment(entry, segment)
    )

  def isCommitted(batch: Long): Future[Boolean] = entry(batch).map(_ != EntryFound.Absent)

  /** Whether storage has an entry of `batch` by the reader's run, whatever was read of it before. */
  def isStillCommitted(batch: Long): Future[Boolean] =
    entries.readAnew(batch).map(_.logged.exists(_.index.writer.run == reader))

  /** The bytes of one part of the segment. */
  def part(found: FoundSegment, index: Int): Future[Array[Byte]] = {
    val part = found.segment.parts(index)
    val entry = found.in
    val path = part.file.fold(entry.path)(location.file)
    def verified(content: Array[Byte]): Array[Byte] = {
      LogFileReader.verify(path, found.segment.key, part, content)
      content
    }
    def read(offset: Long, length: Int) = part.file match {
      case None => range(checkpoint, path, entry.logStart + offset, length, found.segment.key)
      case Some(_) => range(log, path, offset, length, found.segment.key, baseOf(entry))
    }
    def alone() = read(part.offset, part.length).map(verified)
    val known = if (part.file.isEmpty) entry.bytes(part.offset, part.length) else None
    // The name of an entry does not identify its content.
    val of = if (part.file.isEmpty) entry.id.map(_.toString) else Some(location.base.toString)
    (known, entry.rangeAround(part), of) match {
      case (Some(bytes), _, _) =>
        // The damage may have come on the way from storage.
        Future.successful(bytes).map(verified).recoverWith { case _: DamagedLogException => alone() }
      case (None, Some(around), Some(of)) =>
        val place = RangePlace(of, around)
        ranges.get(place)(read(around.offset, around.length)).map(bytes => verified(around.cut(bytes, part)))
          // The damage may be in other parts of the range.
          .recoverWith { case _: DamagedLogException =>
            ranges.forget(place)
            alone()
          }
      case _ => alone()
    }
  }

  /** Whether `content` has exactly the bytes of the segment. */
  def isContent(found: FoundSegment, content: InputStream): Boolean =
    try {
      val path = found.segment.parts.headOption.flatMap(_.file).fold(found.in.path)(location.file)
      found.segment.parts.foreach { part =>
        LogFileReader.verify(path, found.segment.key, part, content.readNBytes(part.length))
      }
      content.read() < 0
    } catch { case _: DamagedLogException | _: IOException => false }

  /** Begins to fetch entries that will be read. Failures appear when an entry is read. */
  def prefetch(batches: Seq[Long]): Unit =
    batches.filterNot(batch => cache.contains(place(batch))).foreach(entry(_): Unit)

  /**
   * The entry of a batch, for this reader and those that share its id. Whether it follows the entry before is not checked.
   *
   * @param length of the entry, if known: saves a request
   */
  def fetch(batch: Long, length: Option[Long] = None): Future[EntryFound] =
    cache.get(place(batch))(entries.read(batch, length))

  private def entry(batch: Long): Future[EntryFound] = fetch(batch).map { found =>
    found.logged.foreach(checkChain)
    found
  }

  private def place(batch: Long): EntryPlace = EntryPlace(location.root.toString, reader, batch)

  /** Throws if the previous or next entry, as read before, is not linked with `entry`. */
  private def checkChain(entry: LoadedEntry): Unit = {
    val broken = entry.index.link.exists { link =>
      synchronized {
        seen.put(entry.batch, link)
        if (seen.size > RememberedLinks) seen.remove(seen.head._1): Unit
        val before = seen.get(entry.batch - 1).exists(there => link.previous.exists(_ != there.entry))
        before || seen.get(entry.batch + 1).flatMap(_.previous).exists(_ != link.entry)
      }
    }
    if (broken) throw LogErrors.brokenChain(entry.path, entry.batch)
  }

  /** The base path in the entry, if it differs from the current one. */
  private def baseOf(entry: LoadedEntry): Option[String] = entry.index.base.filterNot(_ == location.base.toString)

  private def range(
      client: StorageClient,
      path: Path,
      offset: Long,
      length: Int,
      key: SegmentKey,
      writtenTo: Option[String] = None
  ): Future[Array[Byte]] =
    client.run(ReadRange(path, offset, length), timeoutMillis).flatMap(_.orElseFail { error =>
      if (StorageErrors.meansTooShort(error))
        LogErrors.damaged(path, offset, s"it ends before ${offset + length}", error)
      else ProtocolErrors.unreadable(path, error)
    }).map(_.getOrElse(throw LogErrors.missingObject(path, s"segment ${key.relativePath}", writtenTo)))
}
