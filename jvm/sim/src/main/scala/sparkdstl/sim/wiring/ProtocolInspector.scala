package sparkdstl.sim.wiring

import java.util.IdentityHashMap

import scala.collection.mutable
import scala.util.control.NonFatal

import sparkdstl.log.format._
import sparkdstl.log.storage.ObjectTail
import sparkdstl.sim.model.{Names, SnapshotZip}
import sparkdstl.sim.spark.{Lookup, SnapshotLookup, StandingSnapshot, StorageInspector}
import sparkdstl.sim.world.{ObjectMap, StoredBytes}

/** Reads commit entries and data files as the format says, at once, from bytes that are there. */
private[wiring] final class ProtocolInspector(location: QueryLocation) extends StorageInspector {
  import ProtocolInspector._

  private val known = new IdentityHashMap[StoredBytes, Entry]
  private val read = new IdentityHashMap[StoredBytes, mutable.HashMap[SegmentKey, Reading]]
  private val named = new IdentityHashMap[StoredBytes, Set[String]]
  private val files = new java.util.HashMap[String, String]
  // What stood at this revision of the objects, as the entries from this batch on down tell of it.
  private var told = Told(-1, -1L, Map.empty)

  override def lookUp(key: SegmentKey, objects: ObjectMap): Lookup =
    objects.get(Names.commit(key.batch)) match {
      case None => Lookup.NotInLog
      case Some(stored) => inspect(stored, key.batch) match {
          case Plain => Lookup.NotInLog
          case Broken(why) => Lookup.Damaged(why)
          case Logged(segments, _, logStart, _, _) =>
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
      objects: ObjectMap,
      batch: Long
  ): Lookup = {
    val ofEntry = read.computeIfAbsent(entry, _ => mutable.HashMap.empty)
    val sources = segment.parts.map(part => part.file.fold(Option(entry))(file => objects.get(pathOf(file))))
    ofEntry.get(key) match {
      case Some(before) if before.sources.corresponds(sources)(isSame) => before.found
      case _ =>
        val found = readParts(key, segment, sources, logStart, batch)
        ofEntry(key) = Reading(sources, found)
        found
    }
  }

  private def pathOf(file: String): String = files.computeIfAbsent(file, location.file(_).toString)

  override def snapshot(key: SegmentKey, newest: Long, objects: ObjectMap): SnapshotLookup = {
    look(newest, objects)
    told.held.get(key).fold[SnapshotLookup](SnapshotLookup.NotThere)(held => read(key, held, objects))
  }

  private def look(newest: Long, objects: ObjectMap): Unit =
    if (told.revision != objects.revision || told.newest != newest)
      told = Told(objects.revision, newest, toldOf(newest, objects).reverseIterator.map(held => held.key -> held).toMap)

  override def snapshotsOf(storeDirectory: String, newest: Long, objects: ObjectMap): Vector[SegmentKey] = {
    look(newest, objects)
    val standing = told.held.valuesIterator.filter { held =>
      held.key.storeDirectory == storeDirectory && objects.contains(Names.commit(held.batch))
    }
    standing.map(_.key).toVector.sortBy(_.version)
  }

  override def standing(newest: Long, objects: ObjectMap): Vector[StandingSnapshot] =
    toldOf(newest, objects).flatMap { held =>
      for {
        (stored, entry) <- logged(held.batch, objects)
        segment <- entry.segments.get(held.key)
        zip <- readOnce(held.key, segment, stored, entry.logStart, objects, held.batch) match {
          case found: Lookup.Found => Some(found)
          case _ => None
        }
        pieces = SnapshotZip.decode(zip.bytes).flatMap(name => entry.files.get(fileOf(held.key, name)))
      } yield StandingSnapshot(held.key, pieces.map(entry.segments(_).parts.flatMap(_.file).map(pathOf).toSet))
    }

  override def holdsOnlySnapshots(path: String, objects: ObjectMap): Boolean =
    objects.below(Names.Commits, deep = false).forall { case (of, stored) =>
      Names.batchOf(of).forall { batch =>
        inspect(stored, batch) match {
          case entry: Logged => entry.segments.valuesIterator.forall { segment =>
              segment.key.kind == SegmentKind.SnapshotFile || !segment.parts.exists(_.file.map(pathOf).contains(path))
            }
          case _ => true
        }
      }
    }

  private def fileOf(snapshot: SegmentKey, name: String) =
    (snapshot.operator, snapshot.partition, snapshot.storeName, name)

  private def read(key: SegmentKey, held: HeldSnapshot, objects: ObjectMap): SnapshotLookup =
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
              entry.files.get(fileOf(key, name)).fold[Lookup](Lookup.Damaged(s"file $name is not in its entry"))(read)
            }
            pieces.collectFirst { case Lookup.Damaged(why) => SnapshotLookup.Damaged(why) }
              .getOrElse(SnapshotLookup.Found(pieces.collect { case found: Lookup.Found => found }))
          case Lookup.Damaged(why) => SnapshotLookup.Damaged(why)
          case Lookup.NotInLog => SnapshotLookup.NotThere
        }
    }

  /** What the newest entry with a log tells, and the one whose list it continues. */
  private def toldOf(
      newest: Long,
      objects: ObjectMap
  ): Vector[HeldSnapshot] = (newest to 0L by -1L).iterator.flatMap(logged(_, objects)).nextOption() match {
    case None => Vector.empty
    case Some((_, Logged(_, _, _, Some(list), batch))) =>
      if (list.complete == batch) list.held else list.held ++ toldOf(list.complete, objects)
    case Some((_, Logged(_, _, _, None, batch))) => toldOf(batch - 1, objects)
  }

  private def logged(batch: Long, objects: ObjectMap): Option[(StoredBytes, Logged)] =
    objects.get(Names.commit(batch)).map(stored => stored -> inspect(stored, batch))
      .collect { case (stored, entry: Logged) => (stored, entry) }

  override def namedBy(batch: Long, entry: StoredBytes): Set[String] = inspect(entry, batch) match {
    case logged: Logged => named.computeIfAbsent(entry, _ => logged.dataFiles.map(pathOf))
    case Plain | Broken(_) => Set.empty
  }

  private val dataDirectory = s"${location.base}/${LogLayout.DataDirectory}/"

  override def isDataFile(path: String): Boolean = path.startsWith(dataDirectory)

  private def inspect(stored: StoredBytes, batch: Long): Entry = {
    val before = known.get(stored)
    if (before != null) before
    else {
      val found =
        try
          CommitEntry.inspect(location.entry(batch), ObjectTail(stored.bytes, stored.bytes.length.toLong)) match {
            case EntryInspection.Whole(index, logStart) =>
              Logged.of(index, logStart, batch)
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

  final case class Told(revision: Int, newest: Long, held: Map[SegmentKey, HeldSnapshot])

  /** What was found, and in which objects. */
  final case class Reading(sources: Seq[Option[StoredBytes]], found: Lookup)

  def isSame(one: Option[StoredBytes], other: Option[StoredBytes]): Boolean = (one, other) match {
    case (Some(a), Some(b)) => a eq b
    case (a, b) => a.isEmpty && b.isEmpty
  }

  sealed trait Entry
  case object Plain extends Entry
  final case class Broken(why: String) extends Entry

  /** @param files those of snapshots, by their store and name */
  final case class Logged(
      segments: Map[SegmentKey, SegmentEntry],
      files: Map[(Long, Int, String, String), SegmentKey],
      logStart: Long,
      snapshots: Option[SnapshotList],
      batch: Long
  ) extends Entry {
    def dataFiles: Set[String] = segments.valuesIterator.flatMap(_.parts).flatMap(_.file).toSet
  }

  object Logged {
    def of(index: LogFileIndex, logStart: Long, batch: Long): Logged = {
      val files = index.entries.reverseIterator.map(_.key).collect {
        case key @ SegmentKey(operator, partition, store, _, Some(name), SegmentKind.SnapshotFile) =>
          (operator, partition, store, name) -> key
      }
      Logged(index.entries.map(e => e.key -> e).toMap, files.toMap, logStart, index.snapshots, batch)
    }
  }
}
