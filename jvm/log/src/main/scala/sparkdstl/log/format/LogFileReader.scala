// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.nio.ByteBuffer
import java.util.UUID
import java.util.zip.{DataFormatException, Inflater}

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.storage.ObjectTail

/**
 * Reads logs from the ends of their objects, and verifies segments. Damage fails with file and offset; a format of a later
 * release fails with DSTL_UNSUPPORTED_FORMAT.
 */
object LogFileReader {

  /** Verifies bytes of `file` as `part` of the segment `key`. The error names file, offset, segment and version. */
  def verify(file: Path, key: SegmentKey, part: SegmentPart, bytes: Array[Byte]): Unit = {
    val found = Checksums.ofPart(key, bytes)
    if (bytes.length != part.length || found != part.crc)
      throw LogErrors.damagedSegment(
        file,
        part.offset,
        key.relativePath,
        key.version,
        f"${bytes.length} bytes with CRC32C $found%08x where ${part.length} bytes with ${part.crc}%08x were written"
      )
  }

  private[format] def endsInTrailer(bytes: Array[Byte]): Boolean =
    bytes.length >= LogFile.TrailerLength &&
      hasAt(bytes, bytes.length - LogFile.TrailerMagic.length, LogFile.TrailerMagic)

  /** Reads the trailer, and checks its offsets and lengths against the object's length. */
  private[format] def readTrailer(file: Path, tail: ObjectTail): LogTrailer = {
    val bytes = tail.bytes
    val start = bytes.length - LogFile.TrailerLength
    val offset = tail.length - LogFile.TrailerLength
    if (start < 0) throw LogErrors.damaged(file, tail.length, s"it ends after ${tail.length} bytes")
    if (!endsInTrailer(bytes))
      throw LogErrors.damaged(file, offset, "it does not end in a trailer; it was cut off, or is not a log file")
    val buffer = ByteBuffer.wrap(bytes, start, LogFile.TrailerLength)
    val trailer = LogTrailer(
      logLength = buffer.getLong,
      indexOffset = buffer.getLong,
      indexLength = buffer.getInt,
      bodyLength = buffer.getInt,
      indexCrc = buffer.getInt,
      entry = new UUID(buffer.getLong, buffer.getLong),
      version = buffer.getShort & 0xffff,
      kindCode = buffer.getShort & 0xffff,
      requiredFlags = buffer.getInt,
      optionalFlags = buffer.getInt
    )
    if (buffer.getInt != Checksums.of(bytes, start, LogTrailer.ChecksumOffset))
      throw LogErrors.damaged(file, offset, "its trailer's checksum is wrong")
    checkUnderstood(file, offset, trailer)
    checkPlaces(file, tail.length, trailer)
    trailer
  }

  private def checkUnderstood(file: Path, offset: Long, trailer: LogTrailer): Unit = {
    import trailer.{kindCode, version}
    if (version > LogFile.FormatVersion) throw LogErrors.unsupportedFormat(file, version, LogFile.FormatVersion)
    if (version < LogFile.FormatVersion) throw LogErrors.damaged(file, offset, s"its format version is $version")
    val unknown = trailer.requiredFlags & ~LogFile.KnownRequiredFlags
    if (unknown != 0) throw LogErrors.unsupportedFeature(file, f"the flags $unknown%08x", None)
    if (LogFileKind.fromCode(kindCode).isEmpty)
      throw LogErrors.unsupportedFeature(file, s"log files of kind $kindCode", None)
  }

  private def checkPlaces(file: Path, objectLength: Long, trailer: LogTrailer): Unit = {
    import trailer.{bodyLength, indexLength, indexOffset, logLength}
    val offset = objectLength - LogFile.TrailerLength
    val consistent = logLength <= objectLength && indexOffset >= LogFile.HeaderLength && indexOffset <= logLength &&
      indexLength >= 0 && bodyLength >= 0 && indexOffset + indexLength == logLength - LogFile.TrailerLength
    if (!consistent)
      throw LogErrors.damaged(
        file,
        offset,
        s"its trailer places an index of $indexLength bytes at $indexOffset of $logLength bytes"
      )
    if (bodyLength > LogFile.MaxIndexLength || indexLength > LogFile.MaxIndexLength)
      throw LogErrors.tooLarge(file, math.max(bodyLength, indexLength).toLong, LogFile.MaxIndexLength.toLong)
    if (bodyLength > indexLength.toLong * LogFile.MaxIndexRatio)
      throw LogErrors.damaged(
        file,
        offset,
        s"its index would unpack to $bodyLength bytes, more than ${LogFile.MaxIndexRatio} times its stored size"
      )
  }

  /** The index before `trailer`, or the number of bytes from the object's end that are needed to read it. */
  private[format] def readIndex(
      file: Path,
      kind: LogFileKind,
      trailer: LogTrailer,
      tail: ObjectTail
  ): Either[Int, LogFileIndex] = {
    val logStart = tail.length - trailer.logLength
    LogFileKind.fromCode(trailer.kindCode).filter(_ != kind).foreach(other =>
      throw LogErrors.damaged(file, tail.length - LogFile.TrailerLength, s"it is ${other.label}, not ${kind.label}")
    )
    val needed = trailer.indexLength + LogFile.TrailerLength
    if (tail.bytes.length < needed) Left(needed)
    else {
      if (tail.bytes.length >= trailer.logLength)
        checkHeader(file, logStart, tail.bytes, (tail.bytes.length - trailer.logLength).toInt, trailer)
      val start = tail.bytes.length - needed
      val stored = java.util.Arrays.copyOfRange(tail.bytes, start, start + trailer.indexLength)
      Right(decodeIndex(file, logStart + trailer.indexOffset, kind, trailer, stored))
    }
  }

  private def checkHeader(file: Path, offset: Long, bytes: Array[Byte], at: Int, trailer: LogTrailer): Unit = {
    if (!hasAt(bytes, at, LogFile.HeaderMagic)) throw LogErrors.damaged(file, offset, "it has no log header here")
    val header = ByteBuffer.wrap(bytes, at + LogFile.HeaderMagic.length, LogFile.HeaderLength - 8)
    val (version, kindCode) = (header.getShort & 0xffff, header.getShort & 0xffff)
    val (required, optional) = (header.getInt, header.getInt)
    if (header.getInt != Checksums.of(bytes, at, LogFileWriter.HeaderChecksumOffset))
      throw LogErrors.damaged(file, offset, "its header's checksum is wrong")
    val fields = (version, kindCode, required, optional)
    if (fields != ((trailer.version, trailer.kindCode, trailer.requiredFlags, trailer.optionalFlags)))
      throw LogErrors.damaged(file, offset, "its header and its trailer differ")
  }

  private def decodeIndex(
      file: Path,
      offset: Long,
      kind: LogFileKind,
      trailer: LogTrailer,
      stored: Array[Byte]
  ): LogFileIndex = {
    if (Checksums.of(stored) != trailer.indexCrc) throw LogErrors.damaged(file, offset, "its index's checksum is wrong")
    try {
      val index = IndexCodec.decode(kind, inflate(stored, trailer.bodyLength))
      IndexRules.violation(index, trailer.indexOffset).foreach(what => throw new MalformedBytesException(what))
      if (index.link.fold(LogTrailer.NoEntry)(_.entry) != trailer.entry)
        throw new MalformedBytesException(s"its trailer names another entry, ${trailer.entry}")
      index
    } catch {
      case e: UnsupportedIndexException => throw LogErrors.unsupportedFeature(file, e.feature, e.software)
      case e @ (_: MalformedBytesException | _: DataFormatException) =>
        throw LogErrors.damaged(file, offset, s"its index cannot be read: ${e.getMessage}", e)
    }
  }

  private def hasAt(bytes: Array[Byte], offset: Int, mark: Array[Byte]): Boolean =
    offset >= 0 && java.util.Arrays.equals(bytes, offset, offset + mark.length, mark, 0, mark.length)

  private def inflate(stored: Array[Byte], bodyLength: Int): Array[Byte] = {
    val inflater = new Inflater
    try {
      inflater.setInput(stored)
      val body = new Array[Byte](bodyLength)
      var length = 0
      var progress = true
      while (length < bodyLength && progress) {
        val read = inflater.inflate(body, length, bodyLength - length)
        length += read
        progress = read > 0
      }
      val whole = length == bodyLength && inflater.inflate(new Array[Byte](1)) == 0 && inflater.finished() &&
        inflater.getRemaining == 0
      if (!whole)
        throw new MalformedBytesException(s"it does not unpack to $bodyLength bytes")
      body
    } finally inflater.end()
  }
}
