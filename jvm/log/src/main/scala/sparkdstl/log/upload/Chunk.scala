package sparkdstl.log.upload

import java.io.IOException

import scala.concurrent.Future

import sparkdstl.log.storage.{Payload, StorageErrors}

/** A piece of a file to be uploaded. */
trait Chunk {

  /** What it is, for errors. */
  def label: String

  /** Its size in bytes, as it counts for grouping and for memory. */
  def size: Int
}

/**
 * Where a chunk can be read.
 *
 * @param file
 *   relative to the base
 * @param offset
 *   in bytes from the beginning of the file
 * @param length
 *   in bytes
 * @param crc
 *   CRC32C of these bytes
 */
final case class ChunkLocation(file: String, offset: Long, length: Int, crc: Int)

/** Makes a file of chunks. Thread-safe. */
trait ChunkFileEncoder[T] {

  /**
   * @param name
   *   of the file, relative to the base
   */
  def encode(name: String, chunks: Seq[T]): EncodedFile
}

/**
 * @param positions
 *   one for each chunk, in their order
 */
final case class EncodedFile(content: Payload, positions: IndexedSeq[ChunkPosition])

final case class ChunkPosition(offset: Long, length: Int, crc: Int)

/** A chunk on its way to storage. */
trait PendingChunk {

  /** Where the chunk is, once it is durable. Fails with [[UploadFailed]], [[ChunkDiscarded]] or [[UploaderClosed]]. */
  def location: Future[ChunkLocation]

  /**
   * Says that the chunk is not wanted: if it waits it will not be uploaded, and a file none of whose chunks is wanted
   * is deleted once its upload has ended. Further calls do nothing.
   */
  def discard(): Unit
}

/** A file could not be uploaded, or may not be there; `cause` is the request's. */
final class UploadFailed(file: String, labels: Seq[String], cause: Throwable)
    extends IOException(UploadFailed.message(file, labels, cause), cause)

private object UploadFailed {
  private val Shown = 3

  private def message(file: String, labels: Seq[String], cause: Throwable): String = {
    val more = if (labels.size > Shown) ", ..." else ""
    s"cannot upload $file with ${labels.size} chunk(s) (${labels.take(Shown).mkString(", ")}$more): ${StorageErrors.describe(cause)}"
  }
}

/** The chunk was discarded before it was durable. */
final class ChunkDiscarded(label: String) extends IOException(s"$label was discarded")

/** The uploader was closed before the chunk's upload began. */
final class UploaderClosed(label: String) extends IOException(s"$label was not uploaded: the uploader is closed")
