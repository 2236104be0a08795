// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.model

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.zip.{CRC32C, Inflater}

import scala.collection.mutable

/** The bytes violate the format. */
final class Damage(what: String) extends RuntimeException(what)

/** The name of a store's state on storage. */
final case class StateName(store: String, version: Long, id: Option[String]) {
  def changelog: String = s"$stem.changelog"
  def zip: String = s"$stem.zip"
  override def toString: String = stem
  private def stem = s"$store/$version${id.fold("")("_" + _)}"
}

/**
 * @param file the data file that holds it; None if it is inline in the entry
 */
final case class StoredPart(file: Option[String], offset: Long, length: Int, crc: Int)

/**
 * @param name the path of the file that it replaces, relative to the directory of states
 * @param piece the file's name if it is a file of a snapshot
 */
final case class StoredSegment(name: String, store: String, piece: Option[String], parts: Vector[StoredPart])

/** A snapshot in a list, and the batch whose entry holds it. */
final case class ListedSnapshot(state: StateName, batch: Long)

/** @param complete the batch whose list this one continues; the entry's own batch if it lists all */
final case class SnapshotsListed(complete: Long, listed: Vector[ListedSnapshot])

/** The log in a commit entry. */
final case class StoredLog(logStart: Int, segments: Vector[StoredSegment], snapshots: Option[SnapshotsListed])

/**
 * Reads commit entries as docs/log-file-format.md specifies them. It shares no code with the reader of the log, and
 * checks all that a reader of a whole object can check.
 */
object LogFormat {
  private val HeaderLength = 24
  private val TrailerLength = 68
  private val Header = "DSTLLOG\n".getBytes(UTF_8)
  private val Trailer = "DSTLEND\n".getBytes(UTF_8)
  private val Note = "{\"dstl\":"
  private val Version = 2
  private val CommitEntry = 1
  private val Suffixes = Map(0 -> ".changelog", 1 -> ".changelog.crc", 2 -> ".zip", 3 -> ".sst")
  private val Piece = 3

  /** The log in the entry of `batch`; None if stock Spark wrote it. Throws [[Damage]]. */
  def readEntry(batch: Long, content: Array[Byte]): Option[StoredLog] =
    if (content.length < TrailerLength || !content.endsWith(Trailer)) {
      val lines = new String(content, UTF_8).split("\n", 3)
      val note = lines.lift(2).fold("")(_.take(Note.length))
      require(!lines.head.contains(' ') && (note.isEmpty || !Note.startsWith(note)), "the entry is cut off")
      None
    } else Some(readLog(batch, content))

  /** The verified bytes of a part in `source`. */
  def cut(source: Array[Byte], start: Long, segment: StoredSegment, part: StoredPart): Array[Byte] = {
    val from = start + part.offset
    require(from >= 0 && from + part.length <= source.length, s"${segment.name} goes beyond the end of its file")
    val bytes = source.slice(from.toInt, from.toInt + part.length)
    val name = segment.name.getBytes(UTF_8)
    require(
      crcOf(ByteBuffer.allocate(4).putInt(name.length).array, name, bytes) == part.crc,
      s"${segment.name} is damaged at $from"
    )
    bytes
  }

  private def readLog(batch: Long, content: Array[Byte]): StoredLog = {
    val trailer = ByteBuffer.wrap(content, content.length - TrailerLength, TrailerLength).slice()
    val logLength = trailer.getLong
    val indexAt = trailer.getLong
    val (stored, unpacked, crc) = (trailer.getInt, trailer.getInt, trailer.getInt)
    val id = new UUID(trailer.getLong, trailer.getLong)
    val meaning = (trailer.getShort.toInt, trailer.getShort.toInt, trailer.getInt, trailer.getInt)
    require(crcOf(content.slice(content.length - TrailerLength, content.length - 12)) == trailer.getInt, "trailer")
    require(meaning == ((Version, CommitEntry, 0, 0)), s"version, kind and flags are $meaning")
    require(
      logLength <= content.length && indexAt >= HeaderLength && indexAt + stored + TrailerLength == logLength,
      "the index is not at the trailer's offset"
    )
    val start = content.length - logLength.toInt
    val header = ByteBuffer.wrap(content, start, HeaderLength).slice()
    require(content.slice(start, start + Header.length).sameElements(Header), "no log begins at the trailer's offset")
    header.position(8)
    val headerMeaning = (header.getShort.toInt, header.getShort.toInt, header.getInt, header.getInt)
    require(headerMeaning == meaning, "header and trailer differ")
    require(crcOf(content.slice(start, start + 20)) == header.getInt, "header")
    val index = content.slice(start + indexAt.toInt, start + indexAt.toInt + stored)
    require(crcOf(index) == crc, "index")
    readIndex(batch, id, start, unpack(index, unpacked))
  }

  private def readIndex(batch: Long, id: UUID, start: Int, body: Array[Byte]): StoredLog = {
    val sections = sectionsOf(body)
    def section(tag: Int) = sections.getOrElse(tag, throw new Damage(s"section $tag is missing"))
    val entry = section(4)
    require(entry.number() == batch, "the entry of another batch")
    require(entry.uuid() == id, "the trailer names another entry")
    val files = section(8).many(_.text())
    val stores = section(10).many(fields => (fields.number(), fields.text()))
    val segments = readSegments(section(12), files, stores)
    require(segments.map(_.name).distinct.size == segments.size, "a segment is named twice")
    StoredLog(start, segments, sections.get(14).map(readSnapshots(_, batch, stores)))
  }

  private def readSegments(
      fields: Fields,
      files: Vector[String],
      stores: Vector[(Long, String)]
  ): Vector[StoredSegment] = {
    val ends = mutable.Map.empty[Int, Long].withDefaultValue(HeaderLength.toLong)
    var (partition, version) = (0L, 0L)
    fields.many { of =>
      val store = stores(of.number().toInt)
      partition += of.signed()
      version += of.signed()
      of.signed(): Unit // the attempt
      val kind = of.byte()
      val id = of.id()
      val suffix = Suffixes.getOrElse(kind, throw new Damage(s"kind $kind"))
      val parts = of.many { part =>
        val file = part.number().toInt
        val offset = ends(file) + part.signed()
        val length = part.number().toInt
        ends(file) = offset + length
        StoredPart(Option.when(file > 0)(files(file - 1)), offset, length, part.fixed())
      }
      val directory = directoryOf(store, partition)
      StoredSegment(
        s"$directory/$version${id.fold("")("_" + _)}$suffix",
        directory,
        id.filter(_ => kind == Piece),
        parts
      )
    }
  }

  private def readSnapshots(fields: Fields, batch: Long, stores: Vector[(Long, String)]): SnapshotsListed = {
    val complete = batch - fields.number()
    fields.number(): Unit // up to which version there may be plain files
    val listed = fields.many { of =>
      val store = stores(of.number().toInt)
      val directory = directoryOf(store, of.number())
      val state = StateName(directory, of.number(), of.id())
      val by = batch - of.number()
      of.many(_.number()): Unit // data files
      require(by >= state.version - 1 && (complete == batch || by > complete), s"a snapshot in batch $by")
      ListedSnapshot(state, by)
    }
    require(listed.map(_.state).distinct.size == listed.size, "a snapshot is listed twice")
    SnapshotsListed(complete, listed)
  }

  private def directoryOf(store: (Long, String), partition: Long): String =
    s"${store._1}/$partition${if (store._2.isEmpty) "" else s"/${store._2}"}"

  private def sectionsOf(body: Array[Byte]): Map[Int, Fields] = {
    val all = new Fields(ByteBuffer.wrap(body))
    val sections = mutable.LinkedHashMap.empty[Int, Fields]
    while (all.left > 0) {
      val tag = all.number().toInt
      require(sections.keys.forall(_ < tag), s"section $tag is out of order")
      sections(tag) = all.take(all.number().toInt)
    }
    sections.toMap
  }

  private def unpack(stored: Array[Byte], length: Int): Array[Byte] = {
    val inflater = new Inflater
    try {
      inflater.setInput(stored)
      val body = new Array[Byte](length)
      require(inflater.inflate(body) == length && inflater.getRemaining == 0, "the index does not unpack")
      body
    } finally inflater.end()
  }

  private def crcOf(parts: Array[Byte]*): Int = {
    val crc = new CRC32C
    parts.foreach(crc.update(_))
    crc.getValue.toInt
  }

  private def require(condition: Boolean, damage: => String): Unit = if (!condition) throw new Damage(damage)

  /** The fields of a section, in their order. */
  private final class Fields(bytes: ByteBuffer) {
    def left: Int = bytes.remaining

    def take(length: Int): Fields = {
      require(length <= left, "the index ends early")
      val taken = bytes.slice(bytes.position(), length)
      bytes.position(bytes.position() + length)
      new Fields(taken)
    }

    def byte(): Int = bytes.get() & 0xff

    def fixed(): Int = bytes.getInt()

    def number(): Long = {
      var value = 0L
      var shift = 0
      var last = 0x80
      while (last >= 0x80) {
        last = byte()
        value |= (last & 0x7fL) << shift
        shift += 7
      }
      value
    }

    def signed(): Long = {
      val value = number()
      (value >>> 1) ^ -(value & 1)
    }

    def uuid(): UUID = new UUID(bytes.getLong(), bytes.getLong())

    def text(): String = {
      val content = new Array[Byte](number().toInt)
      bytes.get(content)
      new String(content, UTF_8)
    }

    def id(): Option[String] = byte() match {
      case 0 => None
      case 1 => Some(uuid().toString)
      case _ => Some(text())
    }

    def many[T](one: Fields => T): Vector[T] = Vector.fill(number().toInt)(one(this))
  }
}
