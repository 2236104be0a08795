// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.nio.BufferUnderflowException
import java.util.IdentityHashMap

import scala.collection.mutable

import sparkdstl.sim.machines.{ObjectMap, StoredBytes}

/** The changelog of a state on storage. */
sealed trait Lookup

object Lookup {
  final case class Found(bytes: Array[Byte]) extends Lookup {

    /** The bytes as a change of an attempt. */
    lazy val change: Option[Change] = Change.decode(bytes)

    /** The bytes as a state or a piece of one. */
    lazy val lineage: Lineage = Lineage.decode(bytes)
  }

  /** The log does not have the batch: a plain file may exist. */
  case object NotInLog extends Lookup

  /** It is missing although it should exist, or damaged. */
  final case class Damaged(why: String) extends Lookup
}

/**
 * A snapshot in the log.
 *
 * @param pieces for each of its files, in order, the paths of the data files that hold it
 */
final case class StandingSnapshot(state: StateName, pieces: Vector[Set[String]])

/** A snapshot of a state on storage. */
sealed trait SnapshotLookup

object SnapshotLookup {
  final case class Found(files: Vector[Lookup.Found]) extends SnapshotLookup
  case object NotThere extends SnapshotLookup

  /** It is listed but incomplete. */
  final case class Damaged(why: String) extends SnapshotLookup
}

/** Reads the log on storage for the model's checks, synchronously and without the log's own reader. */
final class StorageReader {
  import StorageReader._

  private val known = new IdentityHashMap[StoredBytes, Entry]
  private val read = new IdentityHashMap[StoredBytes, mutable.HashMap[String, Reading]]
  private val named = new IdentityHashMap[StoredBytes, Set[String]]
  // The snapshots that the entries from the newest batch down list, at this revision of the objects.
  private var listed = Listed(-1, -1L, Map.empty)

  def changelog(state: StateName, objects: ObjectMap): Lookup = {
    val batch = state.version - 1
    objects.get(Names.commit(batch)) match {
      case None => Lookup.NotInLog
      case Some(stored) => inspect(stored, batch) match {
          case Plain => Lookup.NotInLog
          case Broken(why) => Lookup.Damaged(why)
          case entry: Logged => entry.segments.get(state.changelog)
              .fold[Lookup](Lookup.Damaged("it is not in its batch's entry, which has a log"))(
                readOnce(_, stored, entry, objects)
              )
        }
    }
  }

  /** A snapshot in the log, if the newest commit entries list it. */
  def snapshot(state: StateName, newest: Long, objects: ObjectMap): SnapshotLookup = {
    look(newest, objects)
    listed.batches.get(state).flatMap(batch => logged(batch, objects)) match {
      case None => SnapshotLookup.NotThere
      case Some((stored, entry)) => snapshotIn(state, stored, entry, objects)
    }
  }

  /** A store's listed snapshots whose entries exist, in ascending order of versions. */
  def listedFor(store: String, newest: Long, objects: ObjectMap): Vector[ListedSnapshot] = {
    look(newest, objects)
    listed.batches.iterator.collect {
      case (state, batch) if state.store == store && objects.contains(Names.commit(batch)) =>
        ListedSnapshot(state, batch)
    }.toVector.sortBy(_.state.version)
  }

  /** The batches that the list of an entry refers to: those of its snapshots and of the list that it continues. */
  def listRefersTo(batch: Long, objects: ObjectMap): Set[Long] =
    logged(batch, objects).flatMap(_._2.snapshots).fold(Set.empty[Long])(of =>
      of.listed.map(_.batch).toSet + of.complete
    )

  /** The distance in batches to the list that an entry continues; None if it lists all snapshots or has no log. */
  def listContinued(batch: Long, objects: ObjectMap): Option[Long] =
    logged(batch, objects).flatMap(_._2.snapshots).map(batch - _.complete).filter(_ > 0)

  /** The listed snapshots that can be read, with the data files that hold them. */
  def standing(newest: Long, objects: ObjectMap): Vector[StandingSnapshot] = {
    look(newest, objects)
    for {
      (state, batch) <- listed.batches.toVector.sortBy(of => (of._1.store, of._1.version))
      (stored, entry) <- logged(batch, objects)
      zip <- entry.segments.get(state.zip)
      content <- readOnce(zip, stored, entry, objects) match {
        case found: Lookup.Found => Some(found)
        case _ => None
      }
      names <- SnapshotZip.decode(content.bytes)
      pieces = names.flatMap(name => entry.pieces.get((state.store, name)))
    } yield StandingSnapshot(state, pieces.map(_.parts.flatMap(_.file).map(Names.dataFile).toSet))
  }

  /** Whether a data file holds only files of snapshots according to the entries. */
  def holdsOnlySnapshots(path: String, objects: ObjectMap): Boolean =
    objects.below(Names.Commits, deep = false).forall { case (of, stored) =>
      Names.batchOf(of).forall { batch =>
        inspect(stored, batch) match {
          case entry: Logged => entry.segments.valuesIterator.forall { segment =>
              segment.piece.nonEmpty || !segment.parts.exists(_.file.map(Names.dataFile).contains(path))
            }
          case _ => true
        }
      }
    }

  /** The files that a batch's commit entry names, as paths. */
  def namedBy(batch: Long, entry: StoredBytes): Set[String] = inspect(entry, batch) match {
    case logged: Logged => named.computeIfAbsent(entry, _ => logged.dataFiles)
    case Plain | Broken(_) => Set.empty
  }

  /** Whether the entry has a log. */
  def isLogged(batch: Long, entry: StoredBytes): Boolean = inspect(entry, batch) match {
    case _: Logged => true
    case Plain | Broken(_) => false
  }

  /** Has the next look-up read the lists of snapshots again. */
  def forgetList(): Unit = listed = Listed(-1, -1L, Map.empty)

  private def look(newest: Long, objects: ObjectMap): Unit =
    if (listed.revision != objects.revision || listed.newest != newest) {
      val batches = listOf(newest, objects).reverseIterator.map(of => of.state -> of.batch).toMap
      listed = Listed(objects.revision, newest, batches)
    }

  private def snapshotIn(state: StateName, stored: StoredBytes, entry: Logged, objects: ObjectMap): SnapshotLookup = {
    def read(segment: Option[StoredSegment], name: String): Lookup =
      segment.fold[Lookup](Lookup.Damaged(s"$name is not in its entry"))(readOnce(_, stored, entry, objects))
    read(entry.segments.get(state.zip), state.zip) match {
      case Lookup.Found(zip) => SnapshotZip.decode(zip) match {
          case None => SnapshotLookup.Damaged("its content is not what its writer wrote")
          case Some(names) =>
            val pieces = names.map(name => read(entry.pieces.get((state.store, name)), name))
            pieces.collectFirst { case Lookup.Damaged(why) => SnapshotLookup.Damaged(why) }
              .getOrElse(SnapshotLookup.Found(pieces.collect { case found: Lookup.Found => found }))
        }
      case Lookup.Damaged(why) => SnapshotLookup.Damaged(why)
      case Lookup.NotInLog => SnapshotLookup.NotThere
    }
  }

  /** The snapshots that the newest entry with a log lists, with those of the list that it continues. */
  private def listOf(newest: Long, objects: ObjectMap): Vector[ListedSnapshot] =
    Iterator.iterate(newest)(_ - 1).takeWhile(_ >= 0).take(MaxGap).flatMap(logged(_, objects)).nextOption() match {
      case None => Vector.empty
      case Some((_, Logged(_, _, _, Some(list), batch))) =>
        if (list.complete == batch) list.listed else list.listed ++ listOf(list.complete, objects)
      case Some((_, Logged(_, _, _, None, batch))) => listOf(batch - 1, objects)
    }

  private def logged(batch: Long, objects: ObjectMap): Option[(StoredBytes, Logged)] =
    objects.get(Names.commit(batch)).map(stored => stored -> inspect(stored, batch))
      .collect { case (stored, entry: Logged) => (stored, entry) }

  /** Reads and verifies a segment again only if one of its objects has changed. */
  private def readOnce(segment: StoredSegment, stored: StoredBytes, entry: Logged, objects: ObjectMap): Lookup = {
    val ofEntry = read.computeIfAbsent(stored, _ => mutable.HashMap.empty)
    val sources = segment.parts.map(part => part.file.fold(Option(stored))(file => objects.get(Names.dataFile(file))))
    ofEntry.get(segment.name) match {
      case Some(before) if before.sources.corresponds(sources)(isSame) => before.found
      case _ =>
        val found = readParts(segment, sources, entry.logStart)
        ofEntry(segment.name) = Reading(sources, found)
        found
    }
  }

  private def readParts(segment: StoredSegment, sources: Vector[Option[StoredBytes]], logStart: Long): Lookup =
    try {
      val parts = segment.parts.zip(sources).map { case (part, source) =>
        val stored = source.getOrElse(throw new Damage(s"${part.file.mkString} does not exist"))
        LogFormat.cut(stored.bytes, if (part.file.isEmpty) logStart else 0, segment, part)
      }
      Lookup.Found(parts.flatten.toArray)
    } catch { case damage: Damage => Lookup.Damaged(damage.getMessage) }

  private def inspect(stored: StoredBytes, batch: Long): Entry = {
    val before = known.get(stored)
    if (before != null) before
    else {
      val found =
        try LogFormat.readEntry(batch, stored.bytes).fold[Entry](Plain)(Logged.of(_, batch))
        catch { case damage @ (_: Damage | _: BufferUnderflowException) => Broken(damage.toString) }
      known.put(stored, found): Unit
      found
    }
  }
}

private object StorageReader {

  /** No world has more consecutive entries without a log. */
  private val MaxGap = 100

  final case class Listed(revision: Int, newest: Long, batches: Map[StateName, Long])

  /** The result of a read and the objects that it came from. */
  final case class Reading(sources: Vector[Option[StoredBytes]], found: Lookup)

  def isSame(one: Option[StoredBytes], other: Option[StoredBytes]): Boolean = (one, other) match {
    case (Some(a), Some(b)) => a eq b
    case (a, b) => a.isEmpty && b.isEmpty
  }

  sealed trait Entry
  case object Plain extends Entry
  final case class Broken(why: String) extends Entry

  /**
   * @param segments by their names
   * @param pieces the files of snapshots by store and name
   */
  final case class Logged(
      segments: Map[String, StoredSegment],
      pieces: Map[(String, String), StoredSegment],
      logStart: Long,
      snapshots: Option[SnapshotsListed],
      batch: Long
  ) extends Entry {
    def dataFiles: Set[String] =
      segments.valuesIterator.flatMap(_.parts).flatMap(_.file).map(Names.dataFile).toSet
  }

  object Logged {
    def of(log: StoredLog, batch: Long): Logged = {
      val pieces =
        log.segments.reverseIterator.flatMap(segment => segment.piece.map(of => (segment.store, of) -> segment))
      Logged(log.segments.map(of => of.name -> of).toMap, pieces.toMap, log.logStart.toLong, log.snapshots, batch)
    }
  }
}
