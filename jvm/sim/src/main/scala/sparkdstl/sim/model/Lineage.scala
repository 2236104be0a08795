package sparkdstl.sim.model

import java.nio.charset.StandardCharsets.UTF_8

import sparkdstl.sim.machines.SimProcess

/**
 * A store's state, as far as the simulation cares: which attempts' changes it is made of, oldest first. Attempts differ in
 * what they write, so that it shows whose state is read back.
 */
final case class Lineage(tags: Vector[String]) {

  /** Of many tags the first become one: a state does not grow with the age of its query. */
  def +(tag: String): Lineage =
    if (tags.size < Lineage.MaxTags) Lineage(tags :+ tag)
    else {
      val (old, newer) = tags.splitAt(tags.size / 2)
      Lineage((f"${old.size}-of-${old.head.takeWhile(_ != '/')}-${old.hashCode}%08x" +: newer) :+ tag)
    }

  /** What a change says of the state that it was made on. */
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
 * @param name
 *   that no other content has
 */
final case class SnapshotPiece(name: String, content: Array[Byte])

/** What stands for a snapshot's zip: the names of its files, and a hash of them. */
object SnapshotZip {

  /** @param atLeast the length in bytes, if the names alone have less */
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

/** A state as the files of a snapshot: a store that only grows changes its last file, and leaves the others as they are. */
object LineageFiles {
  private val TagsOfAFile = 2

  def encode(lineage: Lineage): Vector[SnapshotPiece] =
    lineage.tags.grouped(TagsOfAFile).zipWithIndex.map { case (tags, index) =>
      val content = Lineage.encode(Lineage(tags))
      SnapshotPiece(s"$index-${hash(content)}", content)
    }.toVector

  /** Whether the file has the content that was written. */
  def isWhole(piece: SnapshotPiece): Boolean = piece.name.endsWith("-" + hash(piece.content))

  private def hash(content: Array[Byte]): String = Integer.toHexString(java.util.Arrays.hashCode(content))

  /** Whether the last file is one that no longer state has. */
  def endsWithinFile(lineage: Lineage): Boolean = lineage.tags.size % TagsOfAFile != 0

  def decode(files: Vector[Array[Byte]]): Lineage = Lineage(files.flatMap(Lineage.decode(_).tags))
}

/**
 * What one attempt did to one store in one batch.
 *
 * @param baseFingerprint
 *   of the state that it was applied to
 * @param baseId
 *   the checkpoint id of that state, in format version 2
 * @param needsSnapshot
 *   whether it cannot be replayed, like one that adds a column family: the attempt has to make a snapshot as well
 */
final case class Change(tag: String, baseFingerprint: Int, baseId: Option[String], needsSnapshot: Boolean = false)

object Change {

  /** @param length at least so many bytes */
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

/** The names that Spark gives to what it keeps of a query. */
object Names {
  val Root = "/checkpoint"
  val Commits = s"$Root/commits"
  val Offsets = s"$Root/offsets"
  val State = s"$Root/state"
  val Claims = s"$Root/dstl/epochs"
  val DataFiles = s"$Root/dstl/data"

  def commit(batch: Long): String = s"$Commits/$batch"
  def offset(batch: Long): String = s"$Offsets/$batch"
  def snapshot(store: String, version: Long, id: Option[String]): String =
    s"$State/$store/$version${id.fold("")("_" + _)}.zip"

  /** The path of a data file, by the name that entries have for it. */
  def dataFile(name: String): String = s"$Root/dstl/$name"

  /** Whether a path is one of a file that is needed only while an entry names it. */
  def isDataFile(path: String): Boolean = path.startsWith(DataFiles + "/")

  /** The name of the directory that a data file is in: an epoch and a run. */
  def runDirectory(path: String): Option[String] =
    if (isDataFile(path)) Some(path.drop(DataFiles.length + 1).takeWhile(_ != '/')) else None

  /** Whether it is a file of Spark's own, which the log never touches. */
  def isSparks(path: String): Boolean = path.startsWith(Offsets)

  def isDriver(process: SimProcess): Boolean = process.name.endsWith("/driver")

  /** The application whose process it is, if it is one's. */
  def applicationOf(process: SimProcess): Option[String] =
    Some(process.name.takeWhile(_ != '/')).filter(_ != process.name)

  def isEntry(path: String): Boolean = path.startsWith(Commits) && batchOf(path).nonEmpty

  /** Whether a path is one of a changelog or snapshot as stock Spark writes it. */
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
