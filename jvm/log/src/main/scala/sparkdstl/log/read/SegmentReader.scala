package sparkdstl.log.read

import java.io.{IOException, InputStream}
import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.{Causes, DamagedLogException, LogErrors, ProtocolErrors}
import sparkdstl.log.format.{EntryLink, LogFileReader, SegmentEntry, SegmentKey, SegmentKind, SnapshotList}
import sparkdstl.log.request.{Outcome, QueryStorage, StorageClient}
import sparkdstl.log.storage.ObjectEndsBefore
import sparkdstl.log.storage.StorageOperation.ReadRange

/** Something that is read once for all stores of an executor. */
sealed trait ReadPlace

/**
 * Which commit entry, as seen by whom: the batch alone does not tell, because a user who goes back lets another run commit
 * it anew.
 */
final case class EntryPlace(root: String, reader: UUID, batch: Long) extends ReadPlace

/**
 * Which part of a data file, or of a commit entry.
 *
 * @param of where data files are; or which entry, by its own id
 */
final case class RangePlace(of: String, range: FileRange) extends ReadPlace

/** A segment found in the log. */
final case class FoundSegment(in: LoadedEntry, segment: SegmentEntry)

/**
 * Finds segments and reads them, every byte checked before it is handed out.
 *
 * @param cache may be shared by all readers of a process, as may `ranges`
 * @param reader the run, or the scan, for which this reads: what one has seen does not tell another what is there
 */
final class SegmentReader(
    storage: QueryStorage,
    entries: EntryReader,
    cache: MemoryCache[EntryPlace, EntryFound],
    ranges: SharedRanges,
    reader: UUID
) {
  import SegmentReader._
  import storage.{checkpoint, location, log, timeoutMillis}
  private implicit val executor: ExecutionContext = storage.runtime.executor

  // Guarded by this: links of the entries that were read last.
  private val seen = mutable.LinkedHashMap.empty[Long, EntryLink]

  /** Where a segment is; None if it is not in the log. */
  def find(key: SegmentKey): Future[Option[FoundSegment]] =
    if (key.batch < 0) Future.successful(None) else held(key, key.batch)

  /**
   * Where a segment is that is to be read; None if it can only be a plain file, because its batch is not in the log.
   *
   * Fails if the batch is in the log and lacks the store: a plain file that may be there is of another attempt, and does
   * not stand in for it.
   */
  def open(key: SegmentKey): Future[Option[FoundSegment]] =
    if (key.batch < 0) Future.successful(None)
    else entry(key.batch).flatMap {
      case EntryFound.Absent | EntryFound.Plain => Future.successful(None)
      case EntryFound.Logged(entry) =>
        val found = entry.segment(key).map(FoundSegment(entry, _))
        val changelogs = entry.index.entries.iterator.map(_.key).filter(_.kind == SegmentKind.Changelog)
        // One of the other version of Spark's checkpoint format lacks nothing.
        val isExpected = key.kind == SegmentKind.Changelog &&
          changelogs.exists(_.checkpointId.isDefined == key.checkpointId.isDefined)
        if (found.isEmpty && isExpected)
          Future.failed(LogErrors.damaged(entry.path, 0, s"it has a log, and nothing of ${key.relativePath} in it"))
        else Future.successful(found)
    }

  /** The error for a changelog that is not a plain file either: it names the entry, if that is missing. */
  def explainMissing(key: SegmentKey, cause: Throwable): Future[Throwable] = storage.batches().map { batches =>
    if (batches.contains(key.batch)) cause
    else LogErrors.missingEntry(
      location.entry(key.batch),
      key.relativePath,
      batches.filter(_ < key.batch).lastOption,
      cause
    )
  }

  /** The segments of a store in the entry of `batch`. */
  def segmentsOf(storeDirectory: String, batch: Long): Future[Vector[SegmentEntry]] = entry(batch).map {
    case EntryFound.Logged(entry) => entry.segmentsOf(storeDirectory)
    case EntryFound.Absent | EntryFound.Plain => Vector.empty
  }

  /**
   * The segments of a store in all entries that there are, of these kinds. Lists, and reads what it has not read yet. For
   * snapshots [[snapshots]] asks for less.
   */
  def allSegmentsOf(storeDirectory: String, kinds: Set[SegmentKind]): Future[Vector[SegmentEntry]] =
    for {
      batches <- storage.batches()
      segments <- batches.foldLeft(Future.successful(Vector.empty[SegmentEntry])) { (before, batch) =>
        before.flatMap(found => segmentsOf(storeDirectory, batch).map(found ++ _))
      }
    } yield segments.filter(segment => kinds(segment.key.kind))

  /** The snapshots in all entries that there are. Lists, and reads one or two. */
  def snapshots(): Future[SnapshotList] = storage.batches().flatMap(SnapshotLists.of(_)(entry))

  /** Directories of the stores that the newest batch has changed; none if its changes are not in the log. */
  def newestStores(): Future[Set[String]] = storage.batches().flatMap {
    case batches if batches.isEmpty => Future.successful(Set.empty)
    case batches => entry(batches.last).map {
        case EntryFound.Logged(entry) => entry.changedStores
        case EntryFound.Absent | EntryFound.Plain => Set.empty
      }
  }

  /** A snapshot, or a file that one consists of, where the entry of `batch` holds it. */
  def held(key: SegmentKey, batch: Long): Future[Option[FoundSegment]] = entry(batch).map {
    case EntryFound.Logged(entry) => entry.segment(key).map(FoundSegment(entry, _))
    case EntryFound.Absent | EntryFound.Plain => None
  }

  /** Whether there is a commit entry of `batch` now. */
  def isCommitted(batch: Long): Future[Boolean] = entry(batch).map(_ != EntryFound.Absent)

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
    // An entry's name alone does not tell what is in it.
    val of = if (part.file.isEmpty) entry.index.link.map(_.entry.toString) else Some(location.base.toString)
    (known, entry.rangeAround(part), of) match {
      case (Some(bytes), _, _) => Future.successful(bytes).map(verified)
      case (None, Some(around), Some(of)) =>
        val place = RangePlace(of, around)
        ranges.get(place)(read(around.offset, around.length)).map(bytes => verified(around.cut(bytes, part)))
          // What is wrong with the parts around it is not wrong with this one.
          .recoverWith { case _: DamagedLogException =>
            ranges.forget(place)
            alone()
          }
      case _ => alone()
    }
  }

  /** Whether `content` is the segment's, byte by byte. */
  def isContent(found: FoundSegment, content: InputStream): Boolean =
    try {
      val path = found.segment.parts.headOption.flatMap(_.file).fold(found.in.path)(location.file)
      found.segment.parts.foreach { part =>
        LogFileReader.verify(path, found.segment.key, part, content.readNBytes(part.length))
      }
      content.read() < 0
    } catch { case _: DamagedLogException | _: IOException => false }

  /** Starts fetching entries that will be wanted. Failures show when somebody wants them. */
  def prefetch(batches: Seq[Long]): Unit =
    batches.filterNot(batch => cache.contains(place(batch))).foreach(entry(_): Unit)

  private def entry(batch: Long): Future[EntryFound] =
    cache.get(place(batch))(entries.read(batch).map(EntryFound.withLookup)).flatMap { found =>
      found match {
        case EntryFound.Logged(entry) => checkChain(entry).map(_ => found)
        case _ => Future.successful(found)
      }
    }

  private def place(batch: Long): EntryPlace = EntryPlace(location.root.toString, reader, batch)

  /** Fails if the entry before or after, as this has seen it, does not follow or lead to `entry`. */
  private def checkChain(entry: LoadedEntry): Future[Unit] = {
    val broken = entry.index.link.exists { link =>
      synchronized {
        seen.put(entry.batch, link)
        if (seen.size > RememberedLinks) seen.remove(seen.head._1): Unit
        val before = seen.get(entry.batch - 1).exists(there => link.previous.exists(_ != there.entry))
        before || seen.get(entry.batch + 1).flatMap(_.previous).exists(_ != link.entry)
      }
    }
    if (broken) Future.failed(LogErrors.brokenChain(entry.path, entry.batch)) else Future.unit
  }

  /** Where the entry's data files were when it was written, if that is not where they are looked for. */
  private def baseOf(entry: LoadedEntry): Option[String] = entry.index.base.filterNot(_ == location.base.toString)

  private def range(
      client: StorageClient,
      path: Path,
      offset: Long,
      length: Int,
      key: SegmentKey,
      writtenTo: Option[String] = None
  ): Future[Array[Byte]] =
    client.run(ReadRange(path, offset, length), timeoutMillis).flatMap {
      case Outcome.Done(Some(bytes)) => Future.successful(bytes)
      case Outcome.Done(None) =>
        Future.failed(LogErrors.missingObject(path, s"segment ${key.relativePath}", null, writtenTo))
      case Outcome.Failed(error) if endsBefore(error) =>
        Future.failed(LogErrors.damaged(path, offset, s"it ends before ${offset + length}", error))
      case Outcome.Failed(error) => Future.failed(ProtocolErrors.unreadable(path, error))
      case Outcome.Unknown(error) => Future.failed(ProtocolErrors.unreadable(path, error))
    }
}

private object SegmentReader {
  private val RememberedLinks = 1024

  /** Whether storage has said that the object is shorter. A stream that broke off says nothing of the object. */
  private def endsBefore(error: Throwable): Boolean =
    Causes.of(error).exists(_.isInstanceOf[ObjectEndsBefore])
}
