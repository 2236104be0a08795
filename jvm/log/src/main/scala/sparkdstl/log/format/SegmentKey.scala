package sparkdstl.log.format

/**
 * What a segment holds: a store's changelog, the checksum sibling that Spark writes beside it, or what Spark calls a
 * snapshot's zip, where the snapshot is part of a commit.
 */
sealed abstract class SegmentKind(val code: Int, val suffix: String)

object SegmentKind {
  case object Changelog extends SegmentKind(0, ".changelog")
  case object Checksum extends SegmentKind(1, ".changelog.crc")
  case object Snapshot extends SegmentKind(2, ".zip")

  /** In the order in which a name's ending must be tried: the longer first. */
  val all: Seq[SegmentKind] = Seq(Checksum, Changelog, Snapshot)

  def fromCode(code: Int): Option[SegmentKind] = all.find(_.code == code)
}

/**
 * Names a segment: one store (operator, partition, store name) at one version.
 *
 * @param storeName    empty for Spark's default store, whose files lie directly in the partition's directory
 * @param version      the state version that the changes lead to; batch N produces version N + 1
 * @param checkpointId the state store checkpoint id (checkpoint format version 2), if there is one
 */
final case class SegmentKey(
    operator: Long,
    partition: Int,
    storeName: String,
    version: Long,
    checkpointId: Option[String],
    kind: SegmentKind
) {

  /** The store's directory below `<checkpoint>/state`. */
  def storeDirectory: String =
    if (storeName.isEmpty) s"$operator/$partition" else s"$operator/$partition/$storeName"

  /** The name that Spark gives the file which this segment stands for. */
  def fileName: String = s"$version${checkpointId.fold("")("_" + _)}${kind.suffix}"

  /** The file's path below `<checkpoint>/state`; what errors and logs call the segment. */
  def relativePath: String = s"$storeDirectory/$fileName"

  /** The batch whose commit publishes this segment. */
  def batch: Long = version - 1
}

object SegmentKey {
  // Numbers as Spark writes them: with leading zeros two files would be one segment.
  private val Store = """(0|[1-9]\d{0,17})/(0|[1-9]\d{0,8})(?:/([^/]+))?""".r
  private val File = """(0|[1-9]\d{0,17})(?:_([^/]+?))?(\.changelog(?:\.crc)?|\.zip)""".r

  /** Whether a store's name stays inside its partition's directory; empty is Spark's default store. */
  private[format] def isStoreName(name: String): Boolean = name != "." && name != ".." && !name.contains('/')

  private[format] def isCheckpointId(id: String): Boolean = id.nonEmpty && !id.contains('/')

  /** The segment that Spark calls `fileName` in the store directory `storeDirectory` (`operator/partition[/store]`). */
  def parse(storeDirectory: String, fileName: String): Option[SegmentKey] =
    (storeDirectory, fileName) match {
      case (Store(operator, partition, store), File(version, id, suffix)) =>
        val name = Option(store).getOrElse("")
        SegmentKind.all.find(_.suffix == suffix && isStoreName(name)).map { kind =>
          SegmentKey(operator.toLong, partition.toInt, name, version.toLong, Option(id), kind)
        }
      case _ => None
    }
}
