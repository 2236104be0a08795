package sparkdstl.log.upload

import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.ExecutionContext
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.retry.{Attempts, RetryingExecutor, UploadMetrics, Won}
import sparkdstl.log.runtime.Timer
import sparkdstl.log.storage.LogStorage

/**
 * @param persistSizeThreshold
 *   a group of this many bytes is uploaded without being asked for
 * @param maxInFlight
 *   bytes that may wait or be uploaded at a time before [[LogUploader.put]] blocks
 */
final case class UploaderOptions(persistSizeThreshold: Long, maxInFlight: Long)

/**
 * Names of the objects that an upload may leave in storage, relative to the base. No two may be equal, nor equal to
 * those of any other uploader there ever was on that base.
 */
trait ObjectNames {

  /**
   * @param file
   *   from 1 on, for each file of this uploader
   * @param attempt
   *   from 1 on, for each attempt to upload that file
   */
  def of(file: Int, attempt: Int): String
}

/**
 * Uploads chunks in groups: as one file once they are large enough, or when asked to [[flush]]. Thread-safe.
 *
 * Memory: chunks count from [[put]] until their upload has an outcome, or until they are discarded while they still
 * wait. Losing attempts that are still stuck hold their file's bytes too; their number is bounded by the executor's
 * threads.
 *
 * Objects: each attempt writes its own. The winner's is kept while anybody wants one of its chunks; the others are
 * deleted when their attempt has ended, with success or error.
 *
 * @param executor
 *   runs the uploads; closed by its owner, which fails the uploads under way
 * @param discarder
 *   deletes what nobody needs
 */
final class LogUploader[T <: Chunk](
    storage: LogStorage,
    base: Path,
    names: ObjectNames,
    encoder: ChunkFileEncoder[T],
    executor: RetryingExecutor,
    discarder: ObjectDiscarder,
    options: UploaderOptions,
    timer: Timer,
    metrics: UploadMetrics
) extends AutoCloseable {

  private val budget = new MemoryBudget(options.maxInFlight)
  private val files = new AtomicInteger

  // Guarded by this. The open group takes chunks; a closed uploader takes none.
  private var open = newGroup()
  private var closed = false

  /**
   * Takes a chunk for upload. Blocks while more than `maxInFlight` bytes wait or are being uploaded.
   *
   * @throws InterruptedException
   *   when interrupted while blocked; the chunk was not taken
   * @throws IllegalStateException
   *   when the uploader is closed
   */
  def put(chunk: T): PendingChunk = {
    if (!budget.tryAcquire(chunk.size.toLong)) block(chunk.size.toLong)
    val pending =
      try add(chunk)
      catch {
        case e: Throwable =>
          budget.release(chunk.size.toLong)
          throw e
      }
    // Who is blocked has flushed before this chunk came: nobody else would.
    if (openSize >= options.persistSizeThreshold || budget.waiters > 0) flush()
    pending
  }

  /** Starts the upload of whatever waits. Returns without waiting for storage. */
  def flush(): Unit = {
    val group = synchronized {
      val group = open
      if (!closed) open = newGroup()
      Option.when(!closed)(group)
    }
    group.foreach(upload)
  }

  /** Bytes that wait or are being uploaded. */
  def bytesInFlight: Long = budget.inUse

  /**
   * Takes no more chunks, fails those that wait for their group and the callers that are blocked. What is being
   * uploaded goes on.
   */
  override def close(): Unit = {
    val last = synchronized {
      val last = Option.when(!closed)(open)
      closed = true
      last
    }
    budget.close()
    last.foreach { group =>
      group.seal()
      group.failed(label => new UploaderClosed(label))
    }
  }

  private def block(bytes: Long): Unit = {
    val begun = timer.nowNanos
    try budget.acquire(bytes)(() => flush())
    finally metrics.blockedNanos.add(timer.nowNanos - begun)
  }

  private def add(chunk: T): PendingChunk = synchronized {
    if (closed) throw new IllegalStateException("the uploader is closed")
    open.add(chunk).getOrElse(throw new IllegalStateException("the open group is sealed"))
  }

  private def openSize: Long = synchronized(open).size

  private def newGroup() = new ChunkGroup[T](budget.release, file => discarder.discard(new Path(base, file)))

  private def upload(group: ChunkGroup[T]): Unit = {
    val chunks = group.seal()
    if (chunks.nonEmpty) {
      val file = files.incrementAndGet()
      val labels = chunks.map(_.label)
      def fail(error: Throwable): Unit = group.failed(_ => new UploadFailed(names.of(file, 1), labels, error))
      try start(group, file, encoder.encode(chunks), fail)
      catch {
        case e: Throwable =>
          fail(e)
          if (!NonFatal(e)) throw e
      }
    }
  }

  private def start(group: ChunkGroup[T], file: Int, encoded: EncodedFile, fail: Throwable => Unit): Unit =
    executor
      .run(new FileUpload(file, encoded.content))
      .onComplete(conclude(group, encoded.positions, encoded.content.length, fail))(ExecutionContext.parasitic)

  private def conclude(group: ChunkGroup[T], positions: IndexedSeq[ChunkPosition], size: Int, fail: Throwable => Unit)(
      outcome: Try[Won[String]]
  ): Unit = outcome match {
    case Success(won) =>
      metrics.uploadedBytes.add(size.toLong)
      group.uploaded(won.result, positions)
    case Failure(error) => fail(error)
  }

  /** Puts one file, by a name of each attempt's own. */
  private final class FileUpload(file: Int, content: Array[Byte]) extends Attempts[String] {
    override def name: String = s"upload of ${names.of(file, 1)}"

    override def run(attempt: Int): String = {
      val objectName = names.of(file, attempt)
      storage.put(new Path(base, objectName), content)
      objectName
    }

    override def lost(attempt: Int, outcome: Try[String]): Unit =
      discarder.discard(new Path(base, names.of(file, attempt)))
  }
}
