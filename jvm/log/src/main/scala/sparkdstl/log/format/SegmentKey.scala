// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

/**
 * The content of a segment: a store's changelog, the checksum file that Spark writes for it, a snapshot's zip in Spark's terms,
 * or one of the files of a snapshot.
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

  val all: Seq[SegmentKind] = Seq(Checksum, Changelog, Snapshot, SnapshotFile)
  def fromCode(code: Int): Option[SegmentKind] = all.find(_.code == code)
}

/**
 * Names a segment: one store (operator, partition, store name) at one version. The store name is empty for Spark's default
 * store, whose files lie directly in the partition's directory. Batch N makes version N + 1; a file of a snapshot has the
 * version of the snapshot for which it was uploaded. The qualifier distinguishes segments of the same kind and version: the
 * [[checkpointId]], or for a file of a snapshot Spark's name without the suffix.
 */
final case class SegmentKey(
    operator: Long,
    partition: Int,
    storeName: String,
    version: Long,
    qualifier: Option[String],
    kind: SegmentKind
) {

  /** The store's directory below `<checkpoint>/state`. A field, so that all users share one string. */
  val storeDirectory: String =
    if (storeName.isEmpty) s"$operator/$partition" else s"$operator/$partition/$storeName"

  /** Spark's name of the file that this segment replaces. */
  def fileName: String = s"$version${qualifier.fold("")("_" + _)}${kind.suffix}"

  /** The file's path below `<checkpoint>/state`, by which errors and logs name the segment. */
  def relativePath: String = s"$storeDirectory/$fileName"

  /** The batch that makes this version. Its commit entry holds the segment, unless it belongs to a snapshot. */
  def batch: Long = version - 1

  /** The state store checkpoint id (checkpoint format version 2). Files of snapshots have none. */
  def checkpointId: Option[String] = qualifier.filter(_ => kind != SegmentKind.SnapshotFile)

  /** Spark's name of a file of a snapshot, which a store never reuses; None for other kinds. */
  def snapshotFile: Option[String] = qualifier.filter(_ => kind == SegmentKind.SnapshotFile).map(_ + kind.suffix)

  /** Whether a file of a snapshot has a name: its qualifier. */
  private[format] def isNamedWell: Boolean = kind != SegmentKind.SnapshotFile || qualifier.nonEmpty
}

object SegmentKey {
  // Without leading zeros, as Spark writes numbers, so that no two files are one segment.
  private val Store = """(0|[1-9]\d{0,17})/(0|[1-9]\d{0,8})(?:/([^/]+))?""".r
  private val File = """(0|[1-9]\d{0,17})(?:_([^/]+?))?(\.changelog(?:\.crc)?|\.zip|\.sst)""".r

  /** Whether a store's name stays inside its partition's directory; empty is Spark's default store. */
  private[format] def isStoreName(name: String): Boolean = name != "." && name != ".." && !name.contains('/')

  private[format] def isQualifier(id: String): Boolean = id.nonEmpty && !id.contains('/')

  /** Parses Spark's `fileName` in a store directory (`operator/partition[/store]`). */
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
