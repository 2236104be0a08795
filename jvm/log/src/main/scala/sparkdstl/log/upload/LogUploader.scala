package sparkdstl.log.upload

import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import scala.collection.mutable
import scala.concurrent.{Future, Promise}
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.request.{Outcome, StorageClient}
import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime}
import sparkdstl.log.storage.StorageOperation.Put

/**
 * @param persistSizeThreshold
 *   a group of this many bytes is uploaded without being asked for
 * @param persistDelayMillis
 *   a chunk that has waited so long, in milliseconds, is uploaded without being asked for
 * @param timeoutMillis
 *   of an upload, in milliseconds
 */
final case class UploaderOptions(persistSizeThreshold: Long, persistDelayMillis: Long, timeoutMillis: Long)

object UploaderOptions {
  def of(options: LogOptions): UploaderOptions =
    UploaderOptions(options.persistSizeThreshold, options.persistDelayMs, options.commitTimeoutMs)
}

/**
 * Names of the objects that an uploader leaves in storage, relative to the base. No two may be equal, nor equal to those
 * of any other uploader there ever was on that base.
 */
trait ObjectNames {

  /**
   * @param file
   *   from 1 on, for each file of this uploader
   */
  def of(file: Int): String
}

/**
 * Uploads chunks in groups: as one file once they are large enough, have waited long enough, or when asked to
 * [[flush]], or when somebody waits for memory. Thread-safe; nothing blocks.
 *
 * Memory: chunks count from [[put]] until their upload has an outcome, or until they are discarded while they still
 * wait.
 *
 * Objects: a file has one name, by which it may be put any number of times. It is kept while anybody wants one of its
 * chunks, and deleted afterwards, as is one that may be there although its upload did not succeed.
 *
 * @param budget
 *   may be shared with others; closed by its owner
 * @param discarder
 *   deletes what nobody needs
 */
final class LogUploader[T <: Chunk](
    storage: StorageClient,
    base: Path,
    names: ObjectNames,
    encoder: ChunkFileEncoder[T],
    budget: MemoryBudget,
    discarder: ObjectDiscarder,
    options: UploaderOptions,
    runtime: ProtocolRuntime,
    metrics: UploadMetrics
) {

  private val files = new AtomicInteger
  private val held = new AtomicLong
  private val ended = Promise[Unit]()
  private val shortage = budget.onShortage(() => flush())

  // All guarded by this. The open group takes chunks; a closed uploader takes none.
  private var open = newGroup()
  private var delay = Option.empty[Cancellable] // of the open group's oldest chunk
  private val blocked = mutable.LinkedHashSet.empty[MemoryBudget#Acquisition]
  private var uploadsUnderWay = 0
  private var closed = false

  /**
   * Takes a chunk for upload. Completes when there is memory for it; a caller that does not want it any more by then
   * discards it. Fails with [[UploaderClosed]], and has taken nothing then.
   */
  def put(chunk: T): Future[PendingChunk] = {
    val begunNanos = runtime.timer.nowNanos
    val acquisition = budget.acquire(chunk.size.toLong)
    acquisition.granted.value match {
      case Some(granted) => Future.fromTry(taken(chunk, granted))
      case None =>
        val refused = synchronized {
          if (!closed) blocked += acquisition
          closed
        }
        if (refused) acquisition.cancel(): Unit
        acquisition.granted.transform { granted =>
          synchronized(blocked -= acquisition)
          metrics.blockedNanos.add(runtime.timer.nowNanos - begunNanos)
          taken(chunk, granted)
        }(runtime.executor)
    }
  }

  /** Starts the upload of whatever waits. */
  def flush(): Unit = {
    val group = synchronized(Option.when(!closed)(takeOpenGroup()))
    group.foreach(upload)
  }

  /** Bytes of this uploader that wait for their group or are being uploaded. */
  def bytesInFlight: Long = held.get

  /**
   * Takes no more chunks, and fails those that wait for memory or for their group. Completes when what is being
   * uploaded has ended.
   */
  def close(): Future[Unit] = {
    val (last, refused) = synchronized {
      val last = Option.when(!closed)(takeOpenGroup())
      closed = true
      (last, blocked.toVector)
    }
    shortage.cancel()
    refused.foreach(_.cancel())
    last.foreach { group =>
      group.seal()
      group.failed(label => new UploaderClosed(label))
      over()
    }
    ended.future
  }

  private def taken(chunk: T, granted: Try[Unit]): Try[PendingChunk] = granted match {
    case Success(_) =>
      held.addAndGet(chunk.size.toLong)
      val pending = synchronized(if (closed) None else open.add(chunk))
      if (pending.isEmpty) release(chunk.size.toLong)
      pending.foreach(_ => uploadIfDue())
      pending.toRight(new UploaderClosed(chunk.label)).toTry
    case Failure(_) => Failure(new UploaderClosed(chunk.label))
  }

  private def uploadIfDue(): Unit = {
    // Who is blocked has flushed before this chunk came: nobody else would.
    val due = budget.waiters > 0 || synchronized(open.size >= options.persistSizeThreshold)
    if (due || !armDelay()) flush()
  }

  /** Has the open group uploaded in time. False when there is no timer for it. */
  private def armDelay(): Boolean = synchronized {
    if (delay.isEmpty && !closed) {
      val group = open
      delay =
        try Some(runtime.timer.schedule(options.persistDelayMillis)(() => flushIfOpen(group)))
        catch { case NonFatal(_) => None }
    }
    delay.isDefined
  }

  private def flushIfOpen(group: ChunkGroup[T]): Unit = {
    val due = synchronized(Option.when(!closed && (group eq open))(takeOpenGroup()))
    due.foreach(upload)
  }

  /** Lock held. */
  private def takeOpenGroup(): ChunkGroup[T] = {
    val group = open
    delay.foreach(_.cancel())
    delay = None
    open = newGroup()
    uploadsUnderWay += 1
    group
  }

  private def newGroup() = new ChunkGroup[T](release, file => discarder.discard(new Path(base, file)))

  private def release(bytes: Long): Unit = {
    held.addAndGet(-bytes)
    budget.release(bytes)
  }

  private def upload(group: ChunkGroup[T]): Unit = {
    val chunks = group.seal()
    if (chunks.isEmpty) over()
    else {
      val file = names.of(files.incrementAndGet())
      def fail(error: Throwable): Unit = {
        metrics.uploadsFailed.increment()
        group.failed(_ => new UploadFailed(file, chunks.map(_.label), error))
      }
      metrics.uploadsStarted.increment()
      try start(group, file, encoder.encode(file, chunks), fail)
      catch {
        case error: Throwable =>
          fail(error)
          over()
          if (!NonFatal(error)) throw error
      }
    }
  }

  private def start(group: ChunkGroup[T], file: String, encoded: EncodedFile, fail: Throwable => Unit): Unit = {
    val path = new Path(base, file)
    // One that ends late may have put again what was deleted.
    def attemptEnded(): Unit = if (group.isUnwanted) discarder.discard(path)
    storage.run(Put(path, encoded.content), options.timeoutMillis, () => attemptEnded()).onComplete { result =>
      result.get match {
        case Outcome.Done(_) =>
          metrics.uploadsSucceeded.increment()
          metrics.uploadedBytes.add(encoded.content.length)
          group.uploaded(file, encoded.positions)
        case Outcome.Failed(error) => fail(error)
        case Outcome.Unknown(error) =>
          fail(error)
          discarder.discardLater(path)
      }
      over()
    }(runtime.executor)
  }

  /** A group that was taken has come to its end. */
  private def over(): Unit = {
    val last = synchronized {
      uploadsUnderWay -= 1
      closed && uploadsUnderWay == 0
    }
    if (last) ended.trySuccess(()): Unit
  }
}
