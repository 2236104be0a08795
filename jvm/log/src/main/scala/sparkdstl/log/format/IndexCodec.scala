package sparkdstl.log.format

import java.nio.ByteBuffer

import scala.util.Try

/**
 * The index in bytes, before compression: tagged sections with their lengths, in ascending order. A reader that does not
 * know a section skips it if its tag is odd, and must not go on if it is even.
 */
private[format] object IndexCodec {
  val WriterSection = 2
  val EntrySection = 4
  val NameSection = 6
  val BaseSection = 7
  val FilesSection = 8
  val StoresSection = 10
  val SegmentsSection = 12
  val SnapshotsSection = 14

  private val Known = Set[Long](
    WriterSection,
    EntrySection,
    NameSection,
    BaseSection,
    FilesSection,
    StoresSection,
    SegmentsSection,
    SnapshotsSection
  )

  def encode(index: LogFileIndex): Array[Byte] = {
    val out = new IndexEncoder
    out.section(WriterSection)(writeWriter(_, index))
    for (link <- index.link; batch <- index.batch) out.section(EntrySection)(writeEntry(_, batch, link))
    index.name.foreach(name => out.section(NameSection)(_.text(name)))
    index.base.foreach(base => out.section(BaseSection)(_.text(base)))
    val held = index.snapshots.fold(Vector.empty[HeldSnapshot])(_.held)
    val segments = new SegmentsEncoder(index.entries, held)
    out.section(FilesSection)(segments.writeFiles)
    out.section(StoresSection)(segments.writeStores)
    out.section(SegmentsSection)(segments.writeSegments)
    for (list <- index.snapshots; batch <- index.batch)
      out.section(SnapshotsSection)(segments.writeSnapshots(_, list, batch))
    out.result
  }

  private def writeWriter(out: IndexEncoder, index: LogFileIndex): Unit = {
    out.text(index.software)
    out.uuid(index.writer.run)
    out.number(index.writer.epoch)
    out.text(index.writer.host)
    out.text(index.writer.application)
  }

  private def writeEntry(out: IndexEncoder, batch: Long, link: EntryLink): Unit = {
    out.number(batch)
    out.uuid(link.entry)
    out.number(link.previous.size.toLong)
    link.previous.foreach(out.uuid)
  }

  def decode(kind: LogFileKind, body: Array[Byte]): LogFileIndex = {
    val sections = new Sections(body)
    val (software, writer) = sections.required(WriterSection)(readWriter)
    val place = sections.optional(EntrySection)(readEntry)
    val name = sections.optional(NameSection)(_.text())
    val base = sections.optional(BaseSection)(_.text())
    val files = sections.required(FilesSection)(SegmentsDecoder.readFiles)
    val stores = sections.required(StoresSection)(SegmentsDecoder.readStores)
    val segments = new SegmentsDecoder(files, stores)
    val entries = sections.required(SegmentsSection)(segments.readSegments)
    val snapshots = sections.optional(SnapshotsSection)(segments.readSnapshots(_, place.fold(0L)(_._1)))
    LogFileIndex(
      kind,
      writer,
      place.map(_._1),
      place.map(_._2),
      entries,
      name,
      base,
      software,
      snapshots
    )
  }

  private def readWriter(in: IndexDecoder): (String, Writer) =
    (in.text(), Writer(in.uuid(), in.number(), in.text(), in.text()))

  private def readEntry(in: IndexDecoder): (Long, EntryLink) = {
    val batch = in.number()
    val entry = in.uuid()
    val previous = in.many(minimumSize = 16)(in.uuid())
    if (previous.size > 1) throw new MalformedIndexException(s"${previous.size} previous entries")
    (batch, EntryLink(entry, previous.headOption))
  }

  /** The sections of a body, once it is known that all that must be understood are understood. */
  private final class Sections(body: Array[Byte]) {
    private val contents: Map[Long, ByteBuffer] = {
      val in = new IndexDecoder(ByteBuffer.wrap(body))
      val found = Map.newBuilder[Long, ByteBuffer]
      var last = -1L
      var unknown = Option.empty[Long]
      while (in.remaining > 0) {
        val tag = in.number()
        if (tag <= last) throw new MalformedIndexException(s"section $tag after section $last")
        last = tag
        val content = in.slice(in.int())
        if (Known(tag)) found += tag -> content
        else if (tag % 2 == 0 && unknown.isEmpty) unknown = Some(tag)
      }
      val all = found.result()
      unknown.foreach { tag =>
        val software = all.get(WriterSection.toLong).flatMap(content => Try(new IndexDecoder(content).text()).toOption)
        throw new UnsupportedIndexException(s"section $tag of its index", software)
      }
      all
    }

    def required[T](tag: Int)(read: IndexDecoder => T): T =
      optional(tag)(read).getOrElse(throw new MalformedIndexException(s"section $tag is missing"))

    def optional[T](tag: Int)(read: IndexDecoder => T): Option[T] = contents.get(tag.toLong).map { content =>
      val in = new IndexDecoder(content)
      val value = read(in)
      if (in.remaining > 0) throw new MalformedIndexException(s"${in.remaining} bytes after the end of section $tag")
      value
    }
  }
}
