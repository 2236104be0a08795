package sparkdstl.log.format

import java.nio.ByteBuffer
import java.util.zip.{DataFormatException, Inflater}

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors

/**
 * Reads a log file's index and checks segments' bytes against it. Whatever is not as it was written is an error that
 * names file and offset; nothing unverified is handed out.
 */
object LogFileReader {

  /** Where a file's index is, as its trailer says. */
  final case class Trailer(
      kind: LogFileKind,
      indexOffset: Long,
      indexLength: Int,
      bodyLength: Int,
      indexCrc: Int
  )

  /** The index of a file that is wholly in memory. */
  def readIndex(file: Path, content: Array[Byte]): LogFileIndex = {
    val kindCode = readHeader(file, content)
    val trailer = readTrailer(file, content, content.length.toLong)
    if (kindCode != trailer.kind.code)
      throw LogErrors.damaged(file, 0, s"its header says kind $kindCode, its trailer ${trailer.kind.code}")
    val start = trailer.indexOffset.toInt
    decodeIndex(file, trailer, java.util.Arrays.copyOfRange(content, start, start + trailer.indexLength))
  }

  /**
   * Checks a file's first bytes, at least [[LogFile.HeaderLength]] of them: their mark, their checksum, and that their
   * version can be read.
   */
  def checkHeader(file: Path, content: Array[Byte]): Unit = readHeader(file, content): Unit

  private def readHeader(file: Path, content: Array[Byte]): Int = {
    if (content.length < LogFile.HeaderLength)
      throw LogErrors.damaged(file, content.length.toLong, s"it ends after ${content.length} bytes")
    if (!startsWith(content, 0, LogFile.HeaderMagic)) throw LogErrors.damaged(file, 0, "it is not a log file")
    val header = ByteBuffer.wrap(content, LogFile.HeaderMagic.length, 8)
    val version = header.getShort & 0xffff
    val kindCode = header.getShort & 0xffff
    if (header.getInt != LogFileWriter.crc(content, 0, 12))
      throw LogErrors.damaged(file, 0, "its header's checksum is wrong")
    checkVersion(file, 0, version)
    kindCode
  }

  /**
   * The trailer, from the last bytes of a file.
   *
   * @param tail   the last bytes of the file, at least [[LogFile.TrailerLength]] of them
   * @param length the file's length in bytes
   */
  def readTrailer(file: Path, tail: Array[Byte], length: Long): Trailer = {
    val start = tail.length - LogFile.TrailerLength
    val offset = length - LogFile.TrailerLength
    if (start < 0) throw LogErrors.damaged(file, length, s"it ends after $length bytes")
    if (!startsWith(tail, start + 28, LogFile.TrailerMagic))
      throw LogErrors.damaged(file, offset, "it does not end in a trailer; it was cut off, or is not a log file")
    val buffer = ByteBuffer.wrap(tail, start, LogFile.TrailerLength)
    val indexOffset = buffer.getLong
    val indexLength = buffer.getInt
    val bodyLength = buffer.getInt
    val indexCrc = buffer.getInt
    val version = buffer.getShort & 0xffff
    val kindCode = buffer.getShort & 0xffff
    if (buffer.getInt != LogFileWriter.crc(tail, start, 24))
      throw LogErrors.damaged(file, offset, "its trailer's checksum is wrong")
    checkVersion(file, offset, version)
    val kind = LogFileKind.fromCode(kindCode)
      .getOrElse(throw LogErrors.damaged(file, offset, s"it is of the unknown kind $kindCode"))
    val consistent = indexOffset >= LogFile.HeaderLength && indexLength >= 0 && bodyLength >= 0 &&
      indexOffset + indexLength == offset
    if (!consistent)
      throw LogErrors.damaged(file, offset, s"its trailer places an index of $indexLength bytes at $indexOffset")
    if (bodyLength > LogFile.MaxIndexLength || indexLength > LogFile.MaxIndexLength)
      throw LogErrors.tooLarge(file, math.max(bodyLength, indexLength).toLong, LogFile.MaxIndexLength.toLong)
    if (bodyLength > indexLength.toLong * LogFile.MaxIndexRatio)
      throw LogErrors.damaged(
        file,
        offset,
        s"its index would unpack to $bodyLength bytes, more than ${LogFile.MaxIndexRatio} times its stored size"
      )
    Trailer(kind, indexOffset, indexLength, bodyLength, indexCrc)
  }

  /** The index from its stored bytes. */
  def decodeIndex(file: Path, trailer: Trailer, stored: Array[Byte]): LogFileIndex = {
    if (LogFileWriter.crc(stored) != trailer.indexCrc)
      throw LogErrors.damaged(file, trailer.indexOffset, "its index's checksum is wrong")
    try {
      val index = IndexCodec.decode(trailer.kind, inflate(stored, trailer.bodyLength))
      IndexRules.violation(index, trailer.indexOffset).foreach(what => throw new MalformedIndexException(what))
      index
    } catch {
      case e @ (_: MalformedIndexException | _: DataFormatException | _: IllegalArgumentException) =>
        throw LogErrors.damaged(file, trailer.indexOffset, s"its index cannot be read: ${e.getMessage}", e)
    }
  }

  /** Throws unless `bytes` are the bytes of `part`. */
  def verify(file: Path, key: SegmentKey, part: SegmentPart, bytes: Array[Byte]): Unit = {
    val found = LogFileWriter.crc(bytes)
    if (bytes.length != part.length || found != part.crc)
      throw LogErrors.damagedSegment(
        file,
        part.offset,
        key.relativePath,
        key.version,
        f"${bytes.length} bytes with CRC32C $found%08x where ${part.length} bytes with ${part.crc}%08x were written"
      )
  }

  private def checkVersion(file: Path, offset: Long, version: Int): Unit =
    if (version > LogFile.FormatVersion) throw LogErrors.unsupportedFormat(file, version, LogFile.FormatVersion)
    else if (version < 1) throw LogErrors.damaged(file, offset, s"its format version is $version")

  private def startsWith(bytes: Array[Byte], offset: Int, mark: Array[Byte]): Boolean =
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
        throw new MalformedIndexException(s"it does not unpack to $bodyLength bytes")
      body
    } finally inflater.end()
  }
}
