package sparkdstl.log.format

/**
 * What a segment holds: a store's changelog, the checksum sibling that Spark writes beside it, what Spark calls a
 * snapshot's zip, or one of the files that a snapshot consists of.
 */
sealed abstract class SegmentKind(val code: Int, val suffix: String) {

  /** Whether it is part of a snapshot. */
  def isOfSnapshot: Boolean = this == SegmentKind.Snapshot || this == SegmentKind.SnapshotFile
}

object SegmentKind {
  case object Changelog extends SegmentKind(0, ".changelog")
  case object Checksum extends SegmentKind(1, ".changelog.crc")
  case object Snapshot extends SegmentKind(2, ".zip")
  case object SnapshotFile extends SegmentKind(3, ".sst")

  /** In the order in which a name's ending must be tried: the longer first. */
  val all: Seq[SegmentKind] = Seq(Checksum, Changelog, Snapshot, SnapshotFile)

  def fromCode(code: Int): Option[SegmentKind] = all.find(_.code == code)
}

/**
 * Names a segment: one store (operator, partition, store name) at one version.
 *
 * @param storeName empty for Spark's default store, whose files lie directly in the partition's directory
 * @param version   the state version that the changes lead to; batch N produces version N + 1. Of a snapshot's file, the
 *                  version of the snapshot for which it was uploaded
 * @param qualifier distinguishes it from others of that kind and version: the [[checkpointId]], or of a snapshot's file the
 *                  name that Spark gives it, without the ending
 */
final case class SegmentKey(
    operator: Long,
    partition: Int,
    storeName: String,
    version: Long,
    qualifier: Option[String],
    kind: SegmentKind
) {

  /** The store's directory below `<checkpoint>/state`: one string for all who keep it, because a driver has many stores. */
  val storeDirectory: String =
    if (storeName.isEmpty) s"$operator/$partition" else s"$operator/$partition/$storeName"

  /** The name that Spark gives the file which this segment stands for. */
  def fileName: String = s"$version${qualifier.fold("")("_" + _)}${kind.suffix}"

  /** The file's path below `<checkpoint>/state`; what errors and logs call the segment. */
  def relativePath: String = s"$storeDirectory/$fileName"

  /** The batch that leads to this version. Its commit entry holds the segment, unless it belongs to a snapshot. */
  def batch: Long = version - 1

  /** The state store checkpoint id (checkpoint format version 2), if there is one. Files of snapshots have none. */
  def checkpointId: Option[String] = qualifier.filter(_ => kind != SegmentKind.SnapshotFile)

  /** What Spark calls this file of a snapshot; None if it is something else. The store's name for it never comes again. */
  def snapshotFile: Option[String] = qualifier.filter(_ => kind == SegmentKind.SnapshotFile).map(_ + kind.suffix)

  /** Whether a file of a snapshot has a name: its qualifier. */
  private[format] def isNamedWell: Boolean = kind != SegmentKind.SnapshotFile || qualifier.nonEmpty
}

object SegmentKey {
  // Numbers as Spark writes them: with leading zeros two files would be one segment.
  private val Store = """(0|[1-9]\d{0,17})/(0|[1-9]\d{0,8})(?:/([^/]+))?""".r
  private val File = """(0|[1-9]\d{0,17})(?:_([^/]+?))?(\.changelog(?:\.crc)?|\.zip|\.sst)""".r

  /** Whether a store's name stays inside its partition's directory; empty is Spark's default store. */
  private[format] def isStoreName(name: String): Boolean = name != "." && name != ".." && !name.contains('/')

  private[format] def isQualifier(id: String): Boolean = id.nonEmpty && !id.contains('/')

  /** The segment that Spark calls `fileName` in the store directory `storeDirectory` (`operator/partition[/store]`). */
  def parse(storeDirectory: String, fileName: String): Option[SegmentKey] =
    (storeDirectory, fileName) match {
      case (Store(operator, partition, store), File(version, id, suffix)) =>
        val name = Option(store).getOrElse("")
        SegmentKind.all.find(_.suffix == suffix && isStoreName(name)).map { kind =>
          SegmentKey(operator.toLong, partition.toInt, name, version.toLong, Option(id), kind)
        }.filter(_.isNamedWell)
      case _ => None
    }
}
