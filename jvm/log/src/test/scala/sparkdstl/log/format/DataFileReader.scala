package sparkdstl.log.format

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.storage.ObjectTail

/** Reads the index of a data file, which is for people: recovery uses the commit entry's. */
object DataFileReader {

  /**
   * The index of a data file, or how many bytes from the file's end are needed to know it.
   *
   * @param name the file's, relative to the log's base path: the file must say that it is its own
   * @throws sparkdstl.log.error.DstlException if the file is damaged, is another one, or needs a later release
   */
  def read(file: Path, name: String, tail: ObjectTail): Either[Int, LogFileIndex] = {
    val trailer = LogFileReader.readTrailer(file, tail)
    val start = tail.length - trailer.logLength
    if (start != 0) throw LogErrors.damaged(file, 0, s"it is a log of ${trailer.logLength} bytes after $start others")
    LogFileReader.readIndex(file, LogFileKind.DataFile, trailer, tail).map { index =>
      index.name.filter(_ != name).foreach(found =>
        throw LogErrors.damaged(file, trailer.indexOffset, s"it is not the object its name says, but $found")
      )
      index
    }
  }
}
