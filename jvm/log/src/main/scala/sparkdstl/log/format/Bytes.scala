// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

/** Raised by decoders; the reader converts it to an error that names the file. */
final private[log] class MalformedBytesException(message: String) extends IllegalArgumentException(message)

/** Raised by decoders for a feature of a later release; the reader converts it to an error that names the file. */
final private[log] class UnsupportedIndexException(val feature: String, val software: Option[String])
    extends RuntimeException(feature)

/** Encodes numbers, texts and bytes. */
private[log] final class ByteEncoder {
  private val bytes = new ByteArrayOutputStream(1024)
  private val out = new DataOutputStream(bytes)
  private val utf8 = UTF_8.newEncoder()

  def result: Array[Byte] = bytes.toByteArray
  def byte(value: Int): Unit = out.writeByte(value)

  def number(value: Long): Unit = {
    require(value >= 0, s"$value is negative")
    leb128(value)
  }

  /** Zigzag encoding: numbers of small magnitude are short. */
  def signed(value: Long): Unit = leb128(value << 1 ^ value >> 63)

  def fixed32(value: Int): Unit = out.writeInt(value)

  def uuid(value: UUID): Unit = {
    out.writeLong(value.getMostSignificantBits)
    out.writeLong(value.getLeastSignificantBits)
  }

  def raw(value: Array[Byte]): Unit = {
    number(value.length.toLong)
    out.write(value)
  }

  def text(value: String): Unit = {
    require(utf8.canEncode(value), s"'$value' has no encoding in UTF-8")
    raw(value.getBytes(UTF_8))
  }

  def section(tag: Int)(write: ByteEncoder => Unit): Unit = {
    val content = new ByteEncoder
    write(content)
    number(tag.toLong)
    raw(content.result)
  }

  private def leb128(value: Long): Unit = {
    var rest = value
    while ((rest & ~0x7fL) != 0) {
      out.writeByte((rest & 0x7f | 0x80).toInt)
      rest >>>= 7
    }
    out.writeByte(rest.toInt)
  }
}

/** Decodes the output of [[ByteEncoder]]. Checks lengths before it allocates memory. */
private[log] final class ByteDecoder(in: ByteBuffer) {
  private val utf8 = UTF_8.newDecoder()

  def remaining: Int = in.remaining()

  def byte(): Int = {
    need(1)
    in.get() & 0xff
  }

  def number(): Long = {
    val value = leb128()
    if (value < 0) throw new MalformedBytesException("a number of more than 63 bits")
    value
  }

  def signed(): Long = {
    val value = leb128()
    value >>> 1 ^ -(value & 1)
  }

  def int(): Int = asInt(number())

  def asInt(value: Long): Int =
    if (value >= 0 && value <= Int.MaxValue) value.toInt
    else throw new MalformedBytesException(s"$value where 0 to ${Int.MaxValue} is allowed")

  def fixed32(): Int = {
    need(4)
    in.getInt
  }

  def uuid(): UUID = {
    need(16)
    new UUID(in.getLong, in.getLong)
  }

  def text(): String =
    try utf8.decode(slice(int())).toString
    catch { case _: CharacterCodingException => throw new MalformedBytesException("text that is not UTF-8") }

  /** The inverse of [[ByteEncoder.raw]]. */
  def raw(): Array[Byte] = {
    val bytes = slice(int())
    val copy = new Array[Byte](bytes.remaining)
    bytes.get(copy)
    copy
  }

  /** The next bytes, not copied. */
  def slice(length: Int): ByteBuffer = {
    need(length)
    val part = in.slice(in.position(), length)
    in.position(in.position() + length)
    part
  }

  /** A count and as many values. Refuses a count for which the remaining bytes, at `minimumSize` per value, do not suffice. */
  def many[T](minimumSize: Int)(read: => T): Vector[T] = {
    val count = number()
    if (count > in.remaining() / minimumSize)
      throw new MalformedBytesException(s"$count values announced where ${in.remaining()} bytes are left")
    Vector.fill(count.toInt)(read)
  }

  private def need(length: Int): Unit =
    if (in.remaining() < length)
      throw new MalformedBytesException(s"it ends at ${in.limit()} where $length more bytes were expected")

  private def leb128(): Long = {
    var value = 0L
    var shift = 0
    var next = byte()
    while ((next & 0x80) != 0) {
      if (shift == 63) throw new MalformedBytesException("a number of more than 64 bits")
      value |= (next & 0x7fL) << shift
      shift += 7
      next = byte()
    }
    if (shift == 63 && next > 1) throw new MalformedBytesException("a number of more than 64 bits")
    value | (next & 0x7fL) << shift
  }
}
