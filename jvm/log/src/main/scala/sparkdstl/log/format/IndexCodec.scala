// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.ByteBuffer
import java.util.UUID

import scala.util.Try

/**
 * Encodes an index before compression: tagged sections with their lengths, in ascending order of tags. A reader skips an
 * unknown section with an odd tag, and rejects an index with an unknown even tag.
 */
private[format] object IndexCodec {
  import Codec._

  val WriterSection = 2
  val EntrySection = 4
  val NameSection = 6
  val BaseSection = 7
  val FilesSection = 8
  val StoresSection = 10
  val SegmentsSection = 12
  val SnapshotsSection = 14
  val SparkSection = 15

  private val Known: Set[Long] =
    (Set(WriterSection, EntrySection, NameSection, BaseSection) ++
      Set(FilesSection, StoresSection, SegmentsSection, SnapshotsSection, SparkSection)).map(_.toLong)

  private val writer: Codec[(String, Writer)] =
    pair(utf8, of4(uuid, number, utf8, utf8)(Writer(_, _, _, _))(Writer.unapply))

  private val previous: Codec[Option[UUID]] = vector(uuid).as { ids =>
    if (ids.size > 1) throw new MalformedBytesException(s"${ids.size} previous entries")
    ids.headOption
  }(_.toVector)

  private val entry: Codec[(Long, EntryLink)] =
    pair(number, of2(uuid, previous)(EntryLink(_, _))(EntryLink.unapply))

  private val spark: Codec[SparkChecksums] =
    of2(fixed32, option(fixed32))(SparkChecksums(_, _))(SparkChecksums.unapply)

  def encode(index: LogFileIndex): Array[Byte] = {
    val out = new ByteEncoder
    def section[T](tag: Int, codec: Codec[T], value: Option[T]): Unit =
      value.foreach(of => out.section(tag)(codec.write(_, of)))
    section(WriterSection, writer, Some(index.software -> index.writer))
    section(EntrySection, entry, for (batch <- index.batch; link <- index.link) yield batch -> link)
    section(NameSection, utf8, index.name)
    section(BaseSection, utf8, index.base)
    val (files, stores) = SegmentsCodec.tables(index)
    val segments = new SegmentsCodec(files, stores)
    section(FilesSection, SegmentsCodec.files, Some(files))
    section(StoresSection, SegmentsCodec.stores, Some(stores))
    section(SegmentsSection, segments.segments, Some(index.entries))
    index.batch.foreach(batch => section(SnapshotsSection, segments.snapshots(batch), index.snapshots))
    section(SparkSection, spark, index.spark)
    out.result
  }

  def decode(kind: LogFileKind, body: Array[Byte]): LogFileIndex = {
    val sections = new Sections(body)
    val (software, writtenBy) = sections.required(WriterSection)(writer)
    val place = sections.optional(EntrySection)(entry)
    val name = sections.optional(NameSection)(utf8)
    val base = sections.optional(BaseSection)(utf8)
    val files = sections.required(FilesSection)(SegmentsCodec.files)
    val segments = new SegmentsCodec(files, sections.required(StoresSection)(SegmentsCodec.stores))
    val entries = sections.required(SegmentsSection)(segments.segments)
    val snapshots = sections.optional(SnapshotsSection)(segments.snapshots(place.fold(0L)(_._1)))
    val checksums = sections.optional(SparkSection)(spark)
    LogFileIndex(kind, writtenBy, place.map(_._1), place.map(_._2), entries, name, base, software, snapshots, checksums)
  }

  /** The sections of a body. The constructor fails on an unknown section with an even tag. */
  private final class Sections(body: Array[Byte]) {
    private val contents: Map[Long, ByteBuffer] = {
      val in = new ByteDecoder(ByteBuffer.wrap(body))
      val found = Map.newBuilder[Long, ByteBuffer]
      var last = -1L
      var unknown = Option.empty[Long]
      while (in.remaining > 0) {
        val tag = in.number()
        if (tag <= last) throw new MalformedBytesException(s"section $tag after section $last")
        last = tag
        val content = in.slice(in.int())
        if (Known(tag)) found += tag -> content
        else if (tag % 2 == 0 && unknown.isEmpty) unknown = Some(tag)
      }
      val all = found.result()
      unknown.foreach { tag =>
        val software = all.get(WriterSection.toLong).flatMap(content => Try(new ByteDecoder(content).text()).toOption)
        throw new UnsupportedIndexException(s"section $tag of its index", software)
      }
      all
    }

    def required[T](tag: Int)(codec: Codec[T]): T =
      optional(tag)(codec).getOrElse(throw new MalformedBytesException(s"section $tag is missing"))

    def optional[T](tag: Int)(codec: Codec[T]): Option[T] = contents.get(tag.toLong).map { content =>
      val in = new ByteDecoder(content)
      val value = codec.read(in)
      if (in.remaining > 0) throw new MalformedBytesException(s"${in.remaining} bytes after the end of section $tag")
      value
    }
  }
}
