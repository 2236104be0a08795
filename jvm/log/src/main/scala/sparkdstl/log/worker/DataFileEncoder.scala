package sparkdstl.log.worker

import sparkdstl.log.format._
import sparkdstl.log.upload.{ChunkFileEncoder, ChunkPosition, EncodedFile}

/**
 * Packs segments' chunks into a data file. The file's own index names them, for people who look at it, and says which file it
 * is; recovery goes by the commit entry's.
 */
final class DataFileEncoder(writer: Writer) extends ChunkFileEncoder[SegmentChunk] {
  override def encode(name: String, chunks: Seq[SegmentChunk]): EncodedFile = {
    val file = new LogFileWriter(LogFileKind.DataFile)
    val parts = chunks.map(chunk => file.append(chunk.key, chunk.bytes))
    val entries = chunks.zip(parts).map { case (chunk, part) => SegmentEntry(chunk.key, 0L, Vector(part)) }
    val content =
      file.finish(LogFileIndex(LogFileKind.DataFile, writer, None, None, entries.toVector, name = Some(name)))
    EncodedFile(content, parts.map(part => ChunkPosition(part.offset, part.length, part.crc)).toVector)
  }
}
