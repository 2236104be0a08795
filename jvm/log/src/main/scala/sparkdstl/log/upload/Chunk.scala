// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import java.io.IOException

import scala.concurrent.Future

import sparkdstl.log.error.Causes
import sparkdstl.log.format.{SegmentKey, SegmentPart}

/** A piece of a segment, to be uploaded in a data file. The bytes do not change. */
final case class Chunk(key: SegmentKey, bytes: Array[Byte]) {

  def label: String = key.relativePath
  def size: Int = bytes.length
}

trait PendingChunk {

  /** The chunk's place, once it is durable. Fails with [[UploadFailed]] or [[ChunkDiscarded]]. */
  def location: Future[SegmentPart]

  /** Discards the chunk: it is not uploaded, or its file is deleted unless other chunks are wanted. Idempotent. */
  def discard(): Unit
}

/** The upload of a file failed or has an unknown outcome; `cause` is the error of the request. */
final class UploadFailed(file: String, labels: Seq[String], cause: Throwable)
    extends IOException(
      s"cannot upload $file with ${labels.size} chunk(s) (${labels.take(3).mkString(", ")}" +
        s"${if (labels.size > 3) ", ..." else ""}): ${Causes.describe(cause)}",
      cause
    )

/** The chunk was discarded before it was durable. */
final class ChunkDiscarded(label: String) extends IOException(s"$label was discarded")
