// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}

import sparkdstl.log.format.SegmentPart

/**
 * The chunks of one file, from their collection to the discarding of the last one.
 *
 * States: collecting, until [[seal]]; uploading, until [[uploaded]] or [[failed]]. A chunk is wanted until it is discarded; an
 * uploaded file is deleted when no chunk is wanted. The uploader deletes a file whose failed upload may have taken effect.
 *
 * @param release releases bytes of memory
 * @param delete deletes the file by its path relative to the base; with true, again later, because an unanswered attempt may
 *   still write it
 */
private[upload] final class ChunkGroup(release: Long => Unit, delete: (String, Boolean) => Unit) {
  import ChunkGroup._

  // All guarded by this. Members leave when they are discarded.
  private var state: State = Collecting
  private val members = mutable.LinkedHashSet.empty[Member]
  private var bytes = 0L
  private var isUnanswered = false

  /** Adds a chunk whose memory was acquired. Not called after [[seal]]. */
  def add(chunk: Chunk): PendingChunk = synchronized {
    val member = new Member(chunk)
    members += member
    bytes += chunk.size
    member
  }

  def size: Long = synchronized(bytes)

  /** Ends the collection, and returns the chunks to upload; none if all were discarded. */
  def seal(): Seq[Chunk] = synchronized {
    state = Uploading
    members.toVector.zipWithIndex.map { case (member, index) => member.take(index) }
  }

  /** Records that the file is durable. `parts` are the places of the chunks that [[seal]] returned. */
  def uploaded(file: String, parts: Vector[SegmentPart]): Unit =
    conclude(Uploaded(file))(member => Success(parts(member.index)))

  def failed(error: String => Throwable): Unit = conclude(Failed)(member => Failure(error(member.label)))

  /** Deletes an unwanted file after the end of an attempt, which may have written it again or may write it later. */
  def attemptEnded(file: String, isAnswered: Boolean): Unit = {
    val isUnwanted = synchronized {
      if (!isAnswered) isUnanswered = true
      state == Failed || unwantedFile().isDefined
    }
    if (isUnwanted) delete(file, !isAnswered)
  }

  private def conclude(outcome: State)(resultOf: Member => Try[SegmentPart]): Unit = {
    val (concluded, unwanted, held) = synchronized {
      state = outcome
      (members.toVector, unwantedFile(), bytes)
    }
    release(held)
    concluded.foreach(member => member.complete(resultOf(member)))
    unwanted.foreach(delete.tupled)
  }

  /** The uploaded file, if none of its chunks is wanted. Lock held. */
  private def unwantedFile(): Option[(String, Boolean)] = state match {
    case Uploaded(file) if members.isEmpty => Some((file, isUnanswered))
    case _ => None
  }

  private final class Member(chunk: Chunk) extends PendingChunk {
    val label: String = chunk.label
    private val size = chunk.size
    private val promise = Promise[SegmentPart]()

    // Guarded by the group. Emptied by the upload, so that the bytes can be freed.
    private var content = Option(chunk)

    /** The chunk's number in the file. */
    var index: Int = -1

    override def location: Future[SegmentPart] = promise.future

    override def discard(): Unit = {
      val (freed, unwanted) = ChunkGroup.this.synchronized {
        val wasWanted = members.remove(this)
        val freed = if (wasWanted && state == Collecting) size.toLong else 0L
        bytes -= freed
        content = None
        (freed, if (wasWanted) unwantedFile() else None)
      }
      if (freed > 0) release(freed)
      promise.tryFailure(new ChunkDiscarded(label))
      unwanted.foreach(delete.tupled)
    }

    /** Returns the chunk and numbers it. Lock held. */
    def take(number: Int): Chunk = {
      val taken = content.get
      content = None
      index = number
      taken
    }

    def complete(result: Try[SegmentPart]): Unit = promise.tryComplete(result): Unit
  }
}

private object ChunkGroup {
  private sealed trait State
  private case object Collecting extends State
  private case object Uploading extends State
  private final case class Uploaded(file: String) extends State
  private case object Failed extends State
}
