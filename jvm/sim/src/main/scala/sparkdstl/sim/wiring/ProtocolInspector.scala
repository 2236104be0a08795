package sparkdstl.sim.wiring

import java.util.IdentityHashMap

import scala.collection.mutable
import scala.util.control.NonFatal

import sparkdstl.log.format._
import sparkdstl.log.storage.ObjectTail
import sparkdstl.sim.model.{Names, SnapshotZip}
import sparkdstl.sim.spark.{Lookup, SnapshotLookup, StorageInspector}
import sparkdstl.sim.world.StoredBytes

/** Reads commit entries and data files as the format says, at once, from bytes that are there. */
private[wiring] final class ProtocolInspector(location: QueryLocation) extends StorageInspector {
  import ProtocolInspector._

  private val known = new IdentityHashMap[StoredBytes, Entry]
  private val read = new IdentityHashMap[StoredBytes, mutable.HashMap[SegmentKey, Reading]]
  private val named = new IdentityHashMap[StoredBytes, Set[String]]
  private val files = mutable.HashMap.empty[String, String]

  override def lookUp(key: SegmentKey, root: String, objects: String => Option[StoredBytes]): Lookup =
    objects(Names.commit(key.batch)) match {
      case None => Lookup.NotInLog
      case Some(stored) => inspect(stored, key.batch) match {
          case Plain => Lookup.NotInLog
          case Broken(why) => Lookup.Damaged(why)
          case Logged(segments, logStart, _, _) =>
            segments.get(key) match {
              case None if key.kind == SegmentKind.Snapshot => Lookup.NotInLog
              case None => Lookup.Damaged("it is not in its batch's entry, which has a log")
              case Some(segment) => readOnce(key, segment, stored, logStart, objects, key.batch)
            }
        }
    }

  /** Bytes are read and verified again only where one of the objects that they come from is another than before. */
  private def readOnce(
      key: SegmentKey,
      segment: SegmentEntry,
      entry: StoredBytes,
      logStart: Long,
      objects: String => Option[StoredBytes],
      batch: Long
  ): Lookup = {
    val ofEntry = read.computeIfAbsent(entry, _ => mutable.HashMap.empty)
    val sources = segment.parts.map(part => part.file.fold(Option(entry))(file => objects(pathOf(file))))
    ofEntry.get(key) match {
      case Some(before) if before.sources.corresponds(sources)(isSame) => before.found
      case _ =>
        val found = readParts(key, segment, sources, logStart, batch)
        ofEntry(key) = Reading(sources, found)
        found
    }
  }

  private def pathOf(file: String): String = files.getOrElseUpdate(file, location.file(file).toString)

  override def snapshot(
      key: SegmentKey,
      root: String,
      newest: Long,
      objects: String => Option[StoredBytes]
  ): SnapshotLookup = toldOf(newest, objects).find(_.key == key).fold[SnapshotLookup](SnapshotLookup.NotThere) { held =>
    logged(held.batch, objects) match {
      case None => SnapshotLookup.NotThere
      case Some((stored, entry)) =>
        def read(of: SegmentKey): Lookup = entry.segments.get(of)
          .fold[Lookup](Lookup.Damaged(s"${of.relativePath} is not in its entry"))(
            readOnce(of, _, stored, entry.logStart, objects, held.batch)
          )
        read(key) match {
          case Lookup.Found(zip) =>
            val pieces = SnapshotZip.decode(zip).map { name =>
              entry.segments.keysIterator.find(file =>
                file.kind == SegmentKind.SnapshotFile && file.storeDirectory == key.storeDirectory &&
                  file.qualifier.contains(name)
              ).fold[Lookup](Lookup.Damaged(s"file $name is not in its entry"))(read)
            }
            pieces.collectFirst { case Lookup.Damaged(why) => SnapshotLookup.Damaged(why) }
              .getOrElse(SnapshotLookup.Found(pieces.collect { case Lookup.Found(bytes) => bytes }))
          case Lookup.Damaged(why) => SnapshotLookup.Damaged(why)
          case Lookup.NotInLog => SnapshotLookup.NotThere
        }
    }
  }

  /** What the newest entry with a log tells, and the one whose list it continues. */
  private def toldOf(newest: Long, objects: String => Option[StoredBytes]): Vector[HeldSnapshot] =
    (newest to 0L by -1L).iterator.flatMap(logged(_, objects)).nextOption() match {
      case None => Vector.empty
      case Some((_, Logged(_, _, Some(list), batch))) =>
        if (list.complete == batch) list.held else list.held ++ toldOf(list.complete, objects)
      case Some((_, Logged(_, _, None, batch))) => toldOf(batch - 1, objects)
    }

  private def logged(batch: Long, objects: String => Option[StoredBytes]): Option[(StoredBytes, Logged)] =
    objects(Names.commit(batch)).map(stored => stored -> inspect(stored, batch))
      .collect { case (stored, entry: Logged) => (stored, entry) }

  override def namedBy(batch: Long, entry: StoredBytes): Set[String] = inspect(entry, batch) match {
    case logged: Logged => named.computeIfAbsent(entry, _ => logged.files.map(pathOf))
    case Plain | Broken(_) => Set.empty
  }

  override def isDataFile(path: String, root: String): Boolean =
    path.startsWith(s"${location.base}/${LogLayout.DataDirectory}/")

  private def inspect(stored: StoredBytes, batch: Long): Entry = {
    val before = known.get(stored)
    if (before != null) before
    else {
      val found =
        try
          CommitEntry.inspect(location.entry(batch), ObjectTail(stored.bytes, stored.bytes.length.toLong)) match {
            case EntryInspection.Whole(index, logStart) =>
              Logged(index.entries.map(e => e.key -> e).toMap, logStart, index.snapshots, batch)
            case EntryInspection.Plain => Plain
            case EntryInspection.NeedsTail(_) => Broken("its index is longer than itself")
          }
        catch { case NonFatal(e) => Broken(e.getMessage) }
      known.put(stored, found): Unit
      found
    }
  }

  private def readParts(
      key: SegmentKey,
      segment: SegmentEntry,
      sources: Seq[Option[StoredBytes]],
      logStart: Long,
      batch: Long
  ): Lookup = {
    val parts = segment.parts.zip(sources).map { case (part, source) =>
      val (path, offset) = part.file match {
        case None => (location.entry(batch), logStart + part.offset)
        case Some(file) => (location.file(file), part.offset)
      }
      source.toRight(s"$path does not exist").map { stored =>
        val found = stored.bytes.slice(offset.toInt, offset.toInt + part.length)
        LogFileReader.verify(path, key, part, found)
        found
      }
    }
    parts.collectFirst { case Left(missing) => Lookup.Damaged(missing) }.getOrElse {
      Lookup.Found(parts.flatMap(_.toOption).flatten.toArray)
    }
  }
}

private object ProtocolInspector {

  /** What was found, and in which objects. */
  final case class Reading(sources: Seq[Option[StoredBytes]], found: Lookup)

  def isSame(one: Option[StoredBytes], other: Option[StoredBytes]): Boolean = (one, other) match {
    case (Some(a), Some(b)) => a eq b
    case (a, b) => a.isEmpty && b.isEmpty
  }

  sealed trait Entry
  case object Plain extends Entry
  final case class Broken(why: String) extends Entry
  final case class Logged(
      segments: Map[SegmentKey, SegmentEntry],
      logStart: Long,
      snapshots: Option[SnapshotList],
      batch: Long
  ) extends Entry {
    def files: Set[String] = segments.valuesIterator.flatMap(_.parts).flatMap(_.file).toSet
  }
}
