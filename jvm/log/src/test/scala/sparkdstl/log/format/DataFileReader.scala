// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.storage.ObjectTail

/** Reads the index of a data file, which is for diagnosis only: recovery uses the index of the commit entry. */
object DataFileReader {

  /**
   * The index of a data file, or the number of bytes from the file's end that are needed to read it.
   *
   * @param name the file's name relative to the log's base path, which must equal the name in its index
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
