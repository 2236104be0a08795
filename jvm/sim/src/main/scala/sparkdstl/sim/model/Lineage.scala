// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.nio.charset.StandardCharsets.UTF_8

import sparkdstl.sim.machines.SimProcess

/**
 * The state of a store in the simulation: the tags of the attempts whose changes it consists of, oldest first. Each attempt
 * writes its own tag, which identifies its state when it is read back.
 */
final case class Lineage(tags: Vector[String]) {

  /** Adds a tag. The older half of many tags becomes one tag, so that a state has a bounded size. */
  def +(tag: String): Lineage =
    if (tags.size < Lineage.MaxTags) Lineage(tags :+ tag)
    else {
      val (old, newer) = tags.splitAt(tags.size / 2)
      Lineage((f"${old.size}-of-${old.head.takeWhile(_ != '/')}-${old.hashCode}%08x" +: newer) :+ tag)
    }

  /** Identifies the state that a change was applied to. */
  def fingerprint: Int = tags.hashCode

  override def toString: String = tags.mkString("[", " ", "]")
}

object Lineage {
  val Empty: Lineage = Lineage(Vector.empty)
  private val MaxTags = 12

  def encode(lineage: Lineage): Array[Byte] = lineage.tags.mkString("\n").getBytes(UTF_8)

  def decode(bytes: Array[Byte]): Lineage = {
    val text = new String(bytes, UTF_8)
    if (text.isEmpty) Empty else Lineage(text.split('\n').toVector)
  }
}

/**
 * A file of a snapshot.
 *
 * @param name a name that is unique to the content
 */
final case class SnapshotPiece(name: String, content: Array[Byte])

/** The content of a snapshot's zip in the simulation: the names of its files and a hash of them. */
object SnapshotZip {

  /** @param atLeast the minimal length in bytes */
  def encode(files: Vector[SnapshotPiece], atLeast: Int = 0): Array[Byte] = {
    val names = files.map(_.name).mkString("\n", "\n", "\n")
    val rest = names + "\n" * math.max(0, atLeast - names.length - HashLength)
    (hash(rest) + rest).getBytes(UTF_8)
  }

  /** None if these are not the bytes that were written. */
  def decode(bytes: Array[Byte]): Option[Vector[String]] = {
    val (written, rest) = new String(bytes, UTF_8).splitAt(HashLength)
    Option.when(written == hash(rest))(rest.split('\n').filter(_.nonEmpty).toVector)
  }

  private val HashLength = 8
  private def hash(text: String): String = f"${text.hashCode}%08x"
}

/** A state as the files of a snapshot: a growing store changes its last file only. */
object LineageFiles {
  private val TagsOfAFile = 2

  def encode(lineage: Lineage): Vector[SnapshotPiece] =
    lineage.tags.grouped(TagsOfAFile).zipWithIndex.map { case (tags, index) =>
      val content = Lineage.encode(Lineage(tags))
      SnapshotPiece(s"$index-${hash(content)}", content)
    }.toVector

  /** Whether the content of the file matches its name. */
  def isWhole(piece: SnapshotPiece): Boolean = piece.name.endsWith("-" + hash(piece.content))

  private def hash(content: Array[Byte]): String = Integer.toHexString(java.util.Arrays.hashCode(content))

  def decode(files: Vector[Array[Byte]]): Lineage = Lineage(files.flatMap(Lineage.decode(_).tags))
}

/**
 * The change of one attempt to one store in one batch.
 *
 * @param baseFingerprint the fingerprint of the state that it was applied to
 * @param baseId the checkpoint id of that state, in format version 2
 * @param needsSnapshot
 *   whether it cannot be replayed, like one that adds a column family: the attempt must make a snapshot as well
 */
final case class Change(tag: String, baseFingerprint: Int, baseId: Option[String], needsSnapshot: Boolean = false)

object Change {

  /** @param length the minimal length in bytes */
  def encode(change: Change, length: Int): Array[Byte] = {
    val line =
      s"${change.tag}|${change.baseFingerprint}|${change.baseId.getOrElse("")}|${if (change.needsSnapshot) "s" else ""}|"
    (line + "x" * math.max(0, length - line.length)).getBytes(UTF_8)
  }

  /** None if these are not the bytes that were written. */
  def decode(bytes: Array[Byte]): Option[Change] = new String(bytes, UTF_8).split("\\|", -1) match {
    case Array(tag, fingerprint, id, snapshot, padding) if padding.forall(_ == 'x') =>
      fingerprint.toIntOption.map(Change(tag, _, Option(id).filter(_.nonEmpty), snapshot.nonEmpty))
    case _ => None
  }
}

/** The paths of a query's checkpoint. */
object Names {
  val Root = "/checkpoint"
  val Commits = s"$Root/commits"
  val Offsets = s"$Root/offsets"
  val Source = s"$Root/sources/0"
  val State = s"$Root/state"
  val Claims = s"$Root/dstl/epochs"
  val DataFiles = s"$Root/dstl/data"

  def commit(batch: Long): String = s"$Commits/$batch"
  def offset(batch: Long): String = s"$Offsets/$batch"
  def sourceEntry(number: Long): String = s"$Source/$number"
  def snapshot(store: String, version: Long, id: Option[String]): String =
    s"$State/$store/$version${id.fold("")("_" + _)}.zip"

  /** The path of a data file with this name in entries. */
  def dataFile(name: String): String = s"$Root/dstl/$name"

  /** Whether a path is that of a data file, which is needed only while an entry names it. */
  def isDataFile(path: String): Boolean = path.startsWith(DataFiles + "/")

  /** The name of the directory of a data file: an epoch and a run. */
  def runDirectory(path: String): Option[String] =
    if (isDataFile(path)) Some(path.drop(DataFiles.length + 1).takeWhile(_ != '/')) else None

  /** Whether a path is that of a file of Spark that the log never touches. */
  def isSparks(path: String): Boolean = path.startsWith(Offsets) || path.startsWith(Source)

  def isDriver(process: SimProcess): Boolean = process.name.endsWith("/driver")

  /** The application of a process, if it belongs to one. */
  def applicationOf(process: SimProcess): Option[String] =
    Some(process.name.takeWhile(_ != '/')).filter(_ != process.name)

  def isEntry(path: String): Boolean = path.startsWith(Commits) && batchOf(path).nonEmpty

  /** Whether a path is that of a changelog or snapshot of stock Spark. */
  def isPlainState(path: String): Boolean = path.startsWith(State) &&
    (path.endsWith(".zip") || path.endsWith(".changelog"))

  private val Snapshot = """(\d+)(?:_([^/.]+))?""".r
  private val SnapshotEnding = ".zip"

  def batchOf(path: String): Option[Long] = {
    val name = nameOf(path)
    Option.when(name.nonEmpty && name.forall(c => c >= '0' && c <= '9'))(name.toLong)
  }

  /** Version and id of a snapshot. */
  def snapshotOf(path: String): Option[(Long, Option[String])] =
    if (!path.endsWith(SnapshotEnding)) None
    else nameOf(path).dropRight(SnapshotEnding.length) match {
      case Snapshot(version, id) => Some(version.toLong -> Option(id))
      case _ => None
    }

  private def nameOf(path: String): String = path.substring(path.lastIndexOf('/') + 1)
}
