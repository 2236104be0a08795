// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.util.UUID

import scala.util.Try

/**
 * The sections of an index that name segments. An instance writes or reads one index once. Common fields of segments are
 * written once, or as the difference from the previous segment, so that a segment takes little more than its length and
 * checksum.
 */
private[format] final class SegmentsCodec(files: Vector[String], stores: Vector[(Long, String)]) {
  import Codec._

  // The end of the last part in each file, and fields of the last segment.
  private val ends = Array.fill(files.size + 1)(LogFile.HeaderLength.toLong)
  private var partition = 0L
  private var version = 0L
  private var attempt = 0L

  private val fileNumbers = files.zipWithIndex.toMap
  private val storeNumbers = stores.zipWithIndex.toMap
  private val file: Codec[String] = size.as(number => files.lift(number).getOrElse(throw noFile(number)))(fileNumbers)

  private val store: Codec[(Long, String)] = size.as(number =>
    stores.lift(number).getOrElse(throw new MalformedBytesException(s"store number $number of ${stores.size}"))
  )(storeNumbers)

  private val part: Codec[SegmentPart] = new Codec[SegmentPart](7)((out, part) => {
    val file = part.file.fold(0)(fileNumbers(_) + 1)
    out.number(file.toLong)
    out.signed(part.offset - ends(file))
    out.number(part.length.toLong)
    out.fixed32(part.crc)
    ends(file) = part.offset + part.length
  })(in => {
    val file = in.int()
    if (file > files.size) throw noFile(file)
    val offset = ends(file) + in.signed()
    val length = in.int()
    ends(file) = offset + length
    SegmentPart(Option.when(file > 0)(files(file - 1)), offset, length, in.fixed32())
  })

  private val parts = vector(part)

  private val segment: Codec[SegmentEntry] = new Codec[SegmentEntry](7)((out, entry) => {
    val key = entry.key
    store.write(out, (key.operator, key.storeName))
    out.signed(key.partition - partition)
    out.signed(key.version - version)
    out.signed(entry.attempt - attempt)
    partition = key.partition.toLong
    version = key.version
    attempt = entry.attempt
    out.byte(key.kind.code)
    SegmentsCodec.qualifier.write(out, key.qualifier)
    parts.write(out, entry.parts)
  })(in => {
    val (operator, name) = store.read(in)
    // Overflowing sums are refused later, or restore the written value.
    partition += in.signed()
    version += in.signed()
    attempt += in.signed()
    if (version < 0) throw new MalformedBytesException(s"version $version")
    val code = in.byte()
    val kind =
      SegmentKind.fromCode(code).getOrElse(throw new MalformedBytesException(s"unknown kind of segment $code"))
    val key = SegmentKey(operator, in.asInt(partition), name, version, SegmentsCodec.qualifier.read(in), kind)
    SegmentEntry(key, attempt, parts.read(in))
  })

  val segments: Codec[Vector[SegmentEntry]] = vector(segment)

  /** The list of snapshots in the entry of `batch`. */
  def snapshots(batch: Long): Codec[SnapshotList] = {
    val batchBefore = number.as(batch - _)(batch - _)
    val snapshot = pair(
      of4(store, size, number, SegmentsCodec.qualifier)((store, partition, version, id) =>
        SegmentKey(store._1, partition, store._2, version, id, SegmentKind.Snapshot)
      )(key => Some(((key.operator, key.storeName), key.partition, key.version, key.qualifier))),
      pair(batchBefore, vector(file))
    )
      .as { case (key, (heldBy, files)) => HeldSnapshot(key, heldBy, files) }(of => (of.key, (of.batch, of.files)))
    of3(batchBefore, number, vector(snapshot))(SnapshotList(_, _, _))(SnapshotList.unapply)
  }

  private def noFile(number: Int) = new MalformedBytesException(s"file number $number of ${files.size}")
}

private[format] object SegmentsCodec {
  import Codec._

  // Encodings of a checkpoint id.
  val NoId = 0
  val UuidId = 1
  val TextId = 2

  val files: Codec[Vector[String]] = vector(utf8)
  val stores: Codec[Vector[(Long, String)]] = vector(pair(number, utf8))

  /** The data files and stores in an index, in order of appearance. */
  def tables(index: LogFileIndex): (Vector[String], Vector[(Long, String)]) = {
    val held = index.snapshots.fold(Vector.empty[HeldSnapshot])(_.held)
    val files = index.entries.iterator.flatMap(_.parts).flatMap(_.file) ++ held.iterator.flatMap(_.files)
    val stores = (index.entries.iterator.map(_.key) ++ held.iterator.map(_.key)).map(key =>
      (key.operator, key.storeName)
    )
    (files.distinct.toVector, stores.distinct.toVector)
  }

  private val qualifier: Codec[Option[String]] = new Codec[Option[String]](1)((out, id) =>
    id match {
      case None => out.byte(NoId)
      case Some(text) if text.length == 36 && Try(UUID.fromString(text).toString).toOption.contains(text) =>
        out.byte(UuidId)
        out.uuid(UUID.fromString(text))
      case Some(text) =>
        out.byte(TextId)
        out.text(text)
    }
  )(in =>
    in.byte() match {
      case NoId => None
      case UuidId => Some(in.uuid().toString)
      case TextId => Some(in.text())
      case other => throw new MalformedBytesException(s"unknown kind of checkpoint id $other")
    }
  )
}
