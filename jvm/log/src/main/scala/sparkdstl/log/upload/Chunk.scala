package sparkdstl.log.upload

import java.io.IOException

import scala.concurrent.Future

import sparkdstl.log.error.Causes
import sparkdstl.log.format.{SegmentKey, SegmentPart}

/** A piece of a segment, to be uploaded in a data file. The bytes do not change. */
final case class Chunk(key: SegmentKey, bytes: Array[Byte]) {

  /** What it is, for errors. */
  def label: String = key.relativePath

  /** In bytes. */
  def size: Int = bytes.length
}

/** A chunk on its way to storage. */
trait PendingChunk {

  /** Where the chunk is, once it is durable. Fails with [[UploadFailed]], [[ChunkDiscarded]] or [[UploaderClosed]]. */
  def location: Future[SegmentPart]

  /**
   * Gives the chunk up: if it waits it is not uploaded, and a file none of whose chunks is wanted is deleted once its upload
   * has ended. Further calls do nothing.
   */
  def discard(): Unit
}

/** A file could not be uploaded, or may not be there; `cause` is the request's. */
final class UploadFailed(file: String, labels: Seq[String], cause: Throwable)
    extends IOException(
      s"cannot upload $file with ${labels.size} chunk(s) (${labels.take(3).mkString(", ")}" +
        s"${if (labels.size > 3) ", ..." else ""}): ${Causes.describe(cause)}",
      cause
    )

/** The chunk was discarded before it was durable. */
final class ChunkDiscarded(label: String) extends IOException(s"$label was discarded")

/** The uploader was closed before the chunk's upload began. */
final class UploaderClosed(label: String) extends IOException(s"$label was not uploaded: the uploader is closed")
