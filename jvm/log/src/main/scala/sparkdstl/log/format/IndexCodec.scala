package sparkdstl.log.format

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.collection.mutable

/** Raised while decoding; the reader turns it into an error that names the file. */
final private[log] class MalformedIndexException(message: String) extends RuntimeException(message)

/** The index's body in bytes, before compression. All integers are unsigned LEB128 unless said otherwise. */
private[log] object IndexCodec {
  private val NoId = 0
  private val UuidId = 1
  private val TextId = 2

  def encode(index: LogFileIndex): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(64 + index.entries.size * 32)
    val out = new Encoder(new DataOutputStream(bytes))
    out.uuid(index.writer.run)
    out.text(index.writer.host)
    out.text(index.writer.application)
    out.number(index.batch.fold(0L)(_ + 1))
    out.number(index.history.ranges.size.toLong)
    index.history.ranges.foreach { range =>
      out.number(range.first)
      out.number(range.last - range.first)
      out.uuid(range.run)
    }
    val files = index.entries.iterator.flatMap(_.parts).flatMap(_.file).distinct.toVector
    val fileNumbers = files.zipWithIndex.toMap
    out.number(files.size.toLong)
    files.foreach(out.text)
    out.number(index.entries.size.toLong)
    index.entries.foreach(entry => writeEntry(out, entry, fileNumbers))
    bytes.toByteArray
  }

  private def writeEntry(out: Encoder, entry: SegmentEntry, fileNumbers: Map[String, Int]): Unit = {
    val key = entry.key
    out.number(key.operator)
    out.number(key.partition.toLong)
    out.text(key.storeName)
    out.number(key.version)
    writeCheckpointId(out, key.checkpointId)
    out.byte(key.kind.code)
    out.number(entry.parts.size.toLong)
    entry.parts.foreach { part =>
      out.number(part.file.fold(0L)(file => fileNumbers(file) + 1L))
      out.number(part.offset)
      out.number(part.length.toLong)
      out.fixed32(part.crc)
    }
  }

  private def writeCheckpointId(out: Encoder, id: Option[String]): Unit = id match {
    case None => out.byte(NoId)
    case Some(text) if isCanonicalUuid(text) =>
      out.byte(UuidId)
      out.uuid(UUID.fromString(text))
    case Some(text) =>
      out.byte(TextId)
      out.text(text)
  }

  private def isCanonicalUuid(text: String): Boolean =
    text.length == 36 &&
      (try UUID.fromString(text).toString == text
      catch { case _: IllegalArgumentException => false })

  def decode(kind: LogFileKind, body: Array[Byte]): LogFileIndex = {
    val in = new Decoder(ByteBuffer.wrap(body))
    val writer = Writer(in.uuid(), in.text(), in.text())
    val batch = in.number() match {
      case 0 => None
      case plusOne => Some(plusOne - 1)
    }
    val ranges = in.many(minimumSize = 18) {
      val first = in.number()
      RunRange(first, first + in.number(), in.uuid())
    }
    val files = in.many(minimumSize = 1)(in.text())
    val names = mutable.HashMap.empty[String, String]
    val entries = in.many(minimumSize = 7)(readEntry(in, files, names))
    if (in.remaining > 0) throw new MalformedIndexException(s"${in.remaining} bytes after its end")
    LogFileIndex(kind, writer, batch, RunHistory(ranges), entries)
  }

  private def readEntry(in: Decoder, files: Vector[String], names: mutable.Map[String, String]): SegmentEntry = {
    val operator = in.number()
    val partition = in.int()
    val rawName = in.text()
    val storeName = names.getOrElseUpdate(rawName, rawName)
    val version = in.number()
    val id = in.byte() match {
      case NoId => None
      case UuidId => Some(in.uuid().toString)
      case TextId => Some(in.text())
      case other => throw new MalformedIndexException(s"unknown kind of checkpoint id $other")
    }
    val kindCode = in.byte()
    val kind = SegmentKind.fromCode(kindCode)
      .getOrElse(throw new MalformedIndexException(s"unknown kind of segment $kindCode"))
    val parts = in.many(minimumSize = 7) {
      val file = in.int() match {
        case 0 => None
        case number if number <= files.size => Some(files(number - 1))
        case number => throw new MalformedIndexException(s"file number $number of ${files.size}")
      }
      SegmentPart(file, in.number(), in.int(), in.fixed32())
    }
    SegmentEntry(SegmentKey(operator, partition, storeName, version, id, kind), parts)
  }

  private[log] final class Encoder(out: DataOutputStream) {
    private val utf8 = UTF_8.newEncoder()

    def byte(value: Int): Unit = out.writeByte(value)

    def number(value: Long): Unit = {
      require(value >= 0, s"$value is negative")
      var rest = value
      while (rest >= 0x80) {
        out.writeByte((rest & 0x7f | 0x80).toInt)
        rest >>>= 7
      }
      out.writeByte(rest.toInt)
    }

    def fixed32(value: Int): Unit = out.writeInt(value)

    def uuid(value: UUID): Unit = {
      out.writeLong(value.getMostSignificantBits)
      out.writeLong(value.getLeastSignificantBits)
    }

    def bytes(value: Array[Byte]): Unit = {
      number(value.length.toLong)
      out.write(value)
    }

    def text(value: String): Unit = {
      require(utf8.canEncode(value), s"'$value' has no encoding in UTF-8")
      bytes(value.getBytes(UTF_8))
    }
  }

  private[log] final class Decoder(in: ByteBuffer) {
    private val utf8 = UTF_8.newDecoder()

    def remaining: Int = in.remaining()

    private def need(length: Int): Unit =
      if (length < 0 || in.remaining() < length)
        throw new MalformedIndexException(s"it ends at ${in.limit()} where $length more bytes were expected")

    def byte(): Int = {
      need(1)
      in.get() & 0xff
    }

    def number(): Long = {
      var value = 0L
      var shift = 0
      var next = byte()
      while ((next & 0x80) != 0) {
        if (shift > 49) throw new MalformedIndexException("a number of more than 63 bits")
        value |= (next & 0x7fL) << shift
        shift += 7
        next = byte()
      }
      value | (next & 0x7fL) << shift
    }

    def int(): Int = {
      val value = number()
      if (value > Int.MaxValue) throw new MalformedIndexException(s"$value where at most ${Int.MaxValue} is allowed")
      value.toInt
    }

    def fixed32(): Int = {
      need(4)
      in.getInt
    }

    def uuid(): UUID = {
      need(16)
      new UUID(in.getLong, in.getLong)
    }

    def bytes(): Array[Byte] = {
      val length = int()
      need(length)
      val value = new Array[Byte](length)
      in.get(value)
      value
    }

    def text(): String =
      try utf8.decode(ByteBuffer.wrap(bytes())).toString
      catch { case _: CharacterCodingException => throw new MalformedIndexException("text that is not UTF-8") }

    /** A count and so many values, of which each takes `minimumSize` bytes or more: a false count is found out early. */
    def many[T](minimumSize: Int)(read: => T): Vector[T] = {
      val count = number()
      if (count > in.remaining() / minimumSize)
        throw new MalformedIndexException(s"$count values announced where ${in.remaining()} bytes are left")
      val values = Vector.newBuilder[T]
      var index = 0L
      while (index < count) {
        values += read
        index += 1
      }
      values.result()
    }
  }
}
