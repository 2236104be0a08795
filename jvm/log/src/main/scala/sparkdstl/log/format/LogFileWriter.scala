// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.util.UUID
import java.util.zip.{Deflater, DeflaterOutputStream}

import sparkdstl.log.storage.Payload

/**
 * Writes one log: append the segments' bytes, then `finish` with the index. Bytes are not copied and must not be changed. The
 * same input gives the same bytes.
 */
final class LogFileWriter(kind: LogFileKind) {
  private var content = Vector(LogFileWriter.header(kind.code))
  private var length = LogFile.HeaderLength.toLong

  /** Appends a part of a segment, and returns it for the index. */
  def append(key: SegmentKey, bytes: Array[Byte]): SegmentPart = {
    val part = SegmentPart(None, length, bytes.length, Checksums.ofPart(key, bytes))
    content :+= bytes
    length += bytes.length
    part
  }

  /** Returns the whole log. May be called again with another index. */
  def finish(index: LogFileIndex): Payload = {
    require(index.kind == kind, s"the index of ${index.kind.label} cannot end ${kind.label}")
    IndexRules.violation(index, length).foreach(what =>
      throw new IllegalArgumentException(s"a reader would refuse: $what")
    )
    val body = IndexCodec.encode(index)
    val stored = LogFileWriter.pack(body)
    val trailer = LogTrailer(
      logLength = length + stored.length + LogFile.TrailerLength,
      indexOffset = length,
      indexLength = stored.length,
      bodyLength = body.length,
      indexCrc = Checksums.of(stored),
      entry = index.link.fold(LogTrailer.NoEntry)(_.entry),
      kindCode = kind.code
    )
    Payload(content :+ stored :+ trailer.bytes)
  }
}

/** A log's last bytes: the place of its index, its kind, and its length. */
private[format] final case class LogTrailer(
    logLength: Long,
    indexOffset: Long,
    indexLength: Int,
    bodyLength: Int,
    indexCrc: Int,
    entry: UUID,
    kindCode: Int,
    version: Int = LogFile.FormatVersion,
    requiredFlags: Int = 0,
    optionalFlags: Int = 0
) {

  def bytes: Array[Byte] = {
    val buffer = ByteBuffer.allocate(LogFile.TrailerLength)
    buffer.putLong(logLength).putLong(indexOffset).putInt(indexLength).putInt(bodyLength).putInt(indexCrc)
    buffer.putLong(entry.getMostSignificantBits).putLong(entry.getLeastSignificantBits)
    buffer.putShort(version.toShort).putShort(kindCode.toShort).putInt(requiredFlags).putInt(optionalFlags)
    buffer.putInt(Checksums.of(buffer.array, 0, LogTrailer.ChecksumOffset)).put(LogFile.TrailerMagic).array
  }
}

private[format] object LogTrailer {
  val ChecksumOffset = 56

  /** The entry id in the trailer of a data file. */
  val NoEntry = new UUID(0, 0)
}

private[format] object LogFileWriter {
  val HeaderChecksumOffset = 20

  def header(
      kindCode: Int,
      version: Int = LogFile.FormatVersion,
      requiredFlags: Int = 0,
      optionalFlags: Int = 0
  ): Array[Byte] = {
    val buffer = ByteBuffer.allocate(LogFile.HeaderLength)
    buffer.put(LogFile.HeaderMagic).putShort(version.toShort).putShort(kindCode.toShort)
    buffer.putInt(requiredFlags).putInt(optionalFlags)
    buffer.putInt(Checksums.of(buffer.array, 0, HeaderChecksumOffset)).array
  }

  /** Compresses an index's body for storage. */
  def pack(body: Array[Byte]): Array[Byte] = {
    require(body.length <= LogFile.MaxIndexLength, s"an index of ${body.length} bytes is more than a reader accepts")
    val packed = deflate(body, Deflater.DEFAULT_COMPRESSION)
    if (body.length <= packed.length.toLong * LogFile.MaxIndexRatio) packed else deflate(body, Deflater.NO_COMPRESSION)
  }

  private def deflate(body: Array[Byte], level: Int): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(body.length / 2 + 64)
    val deflater = new Deflater(level)
    try {
      val out = new DeflaterOutputStream(bytes, deflater)
      out.write(body)
      out.close()
    } finally deflater.end()
    bytes.toByteArray
  }
}
