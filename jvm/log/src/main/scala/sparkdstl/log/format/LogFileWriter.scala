package sparkdstl.log.format

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.util.zip.{CRC32C, Deflater, DeflaterOutputStream}

/**
 * Builds one log file in memory: add the segments' bytes, then `finish` with the index that names them.
 * The same input gives the same bytes, so that a repeated write of a batch log changes nothing.
 */
final class LogFileWriter(kind: LogFileKind, sizeHint: Int = 1024) {
  private val out = new ByteArrayOutputStream(math.max(sizeHint, 256))
  out.write(LogFileWriter.header(kind, LogFile.FormatVersion))

  /** Bytes so far. */
  def size: Int = out.size()

  /** Appends a part of a segment; what is returned goes into the index. */
  def append(bytes: Array[Byte]): SegmentPart = {
    val part = SegmentPart(None, out.size().toLong, bytes.length, LogFileWriter.crc(bytes))
    out.write(bytes, 0, bytes.length)
    part
  }

  /** The whole file. */
  def finish(index: LogFileIndex): Array[Byte] = {
    require(index.kind == kind, s"the index of a ${index.kind.label} cannot end a ${kind.label}")
    val offset = out.size().toLong
    IndexRules.violation(index, offset).foreach(what =>
      throw new IllegalArgumentException(s"a reader would refuse: $what")
    )
    val body = IndexCodec.encode(index)
    val stored = LogFileWriter.pack(body)
    out.write(stored, 0, stored.length)
    out.write(LogFileWriter.trailer(kind, LogFile.FormatVersion, offset, stored, body.length))
    out.toByteArray
  }
}

object LogFileWriter {

  def crc(bytes: Array[Byte]): Int = crc(bytes, 0, bytes.length)

  def crc(bytes: Array[Byte], offset: Int, length: Int): Int = {
    val crc = new CRC32C
    crc.update(bytes, offset, length)
    crc.getValue.toInt
  }

  private[format] def header(kind: LogFileKind, version: Int): Array[Byte] = {
    val buffer = ByteBuffer.allocate(LogFile.HeaderLength)
    buffer.put(LogFile.HeaderMagic).putShort(version.toShort).putShort(kind.code.toShort)
    buffer.putInt(crc(buffer.array, 0, 12)).array
  }

  private[format] def trailer(
      kind: LogFileKind,
      version: Int,
      indexOffset: Long,
      stored: Array[Byte],
      bodyLength: Int
  ): Array[Byte] = {
    val buffer = ByteBuffer.allocate(LogFile.TrailerLength)
    buffer.putLong(indexOffset).putInt(stored.length).putInt(bodyLength).putInt(crc(stored))
    buffer.putShort(version.toShort).putShort(kind.code.toShort)
    buffer.putInt(crc(buffer.array, 0, 24)).put(LogFile.TrailerMagic).array
  }

  /** An index's body as it is stored. */
  private[format] def pack(body: Array[Byte]): Array[Byte] = {
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
