package sparkdstl.log.read

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogFile, LogFileIndex, LogFileReader}
import sparkdstl.log.storage.LogStorage

/** Reads a log file's index without its segments, from the end of the file. */
object LogIndexLoader {

  /** Enough for the index of some thousand segments, and cheaper than a second request. */
  private val TailLength = 64 * 1024

  /** @throws java.io.FileNotFoundException if there is no such object */
  def load(storage: LogStorage, path: Path): LogFileIndex = load(storage, path, storage.length(path))

  /** @param length the object's length in bytes */
  def load(storage: LogStorage, path: Path, length: Long): LogFileIndex = {
    val tail = readFrom(storage, path, math.max(0L, length - TailLength), length)
    val trailer = LogFileReader.readTrailer(path, tail, length)
    val inTail = tail.length - LogFile.TrailerLength - trailer.indexLength
    val stored =
      if (inTail >= 0) java.util.Arrays.copyOfRange(tail, inTail, inTail + trailer.indexLength)
      else storage.readRange(path, trailer.indexOffset, trailer.indexLength)
    LogFileReader.decodeIndex(path, trailer, stored)
  }

  private def readFrom(storage: LogStorage, path: Path, offset: Long, length: Long): Array[Byte] =
    storage.readRange(path, offset, (length - offset).toInt)
}
