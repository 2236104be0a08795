// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import sparkdstl.log.format._
import sparkdstl.log.storage.Payload

/**
 * Names and encodes the data files of one uploader; `instance` distinguishes uploaders of the same run and executor. A file's
 * own index is for people; recovery uses the index of the commit entry.
 */
final class DataFiles(writer: Writer, executor: String, instance: String) {

  /** The name of the uploader's file `number`, relative to the base. */
  def name(number: Int): String = LogLayout.dataFile(writer.epoch, writer.run, executor, number.toLong, instance)

  /** The content of file `name`, and the places of the chunks in it. */
  def encode(name: String, chunks: Seq[Chunk]): (Payload, Vector[SegmentPart]) = {
    val file = new LogFileWriter(LogFileKind.DataFile)
    val parts = chunks.iterator.map(chunk => file.append(chunk.key, chunk.bytes)).toVector
    val entries = chunks.zip(parts).map { case (chunk, part) => SegmentEntry(chunk.key, 0L, Vector(part)) }
    val index = LogFileIndex(LogFileKind.DataFile, writer, None, None, entries.toVector, name = Some(name))
    (file.finish(index), parts.map(_.copy(file = Some(name))))
  }
}
