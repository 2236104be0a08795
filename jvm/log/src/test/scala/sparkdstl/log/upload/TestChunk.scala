package sparkdstl.log.upload

import java.util.zip.CRC32C

import sparkdstl.log.storage.Payload

/**
 * @param bytes
 *   what is stored
 */
final case class TestChunk(label: String, bytes: Array[Byte]) extends Chunk {
  override def size: Int = bytes.length
}

object TestChunk {

  /** Of `size` bytes that tell its label. */
  def of(label: String, size: Int): TestChunk =
    TestChunk(label, Array.tabulate(size)(n => (label.hashCode + n).toByte))

  /** Files that are the chunks end to end. */
  object Encoder extends ChunkFileEncoder[TestChunk] {
    override def encode(name: String, chunks: Seq[TestChunk]): EncodedFile = {
      val offsets = chunks.scanLeft(0L)(_ + _.size)
      val positions = chunks.zip(offsets).map { case (chunk, offset) =>
        ChunkPosition(offset, chunk.size, crcOf(chunk.bytes))
      }
      EncodedFile(Payload(chunks.map(_.bytes).toVector), positions.toIndexedSeq)
    }
  }

  def crcOf(bytes: Array[Byte]): Int = {
    val crc = new CRC32C
    crc.update(bytes, 0, bytes.length)
    crc.getValue.toInt
  }
}
