// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import scala.concurrent.Future
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.request.{Outcome, StorageClient}
import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime}
import sparkdstl.log.storage.StorageOperation.Put

/**
 * Uploads chunks in groups, each group as one file: when it is large enough or has waited long enough, on [[flush]], or when a
 * put waits for memory. Thread-safe and non-blocking.
 *
 * Memory: chunks take memory from [[put]] until their upload has an outcome, or until they are discarded while they wait.
 *
 * Files: attempts may write a file several times under the same name. It is deleted when none of its chunks is wanted, and when
 * its failed upload may have taken effect.
 *
 * @param budget may be shared with others
 * @param discarder deletes unwanted files
 */
final class LogUploader(
    storage: StorageClient,
    base: Path,
    files: DataFiles,
    budget: MemoryBudget,
    discarder: ObjectDiscarder,
    options: LogOptions,
    runtime: ProtocolRuntime,
    metrics: UploadMetrics
) {

  private val begun = new AtomicInteger
  private val held = new AtomicLong

  // All guarded by this.
  private var open = newGroup()
  private var delay = Option.empty[Cancellable] // of the open group's oldest chunk
  private var shortage = Option.empty[Cancellable] // while the open group has chunks

  /** Adds a chunk when there is memory for it; then the caller may discard it. */
  def put(chunk: Chunk): Future[PendingChunk] = {
    val begunNanos = runtime.timer.nowNanos
    val granted = budget.acquire(chunk.size.toLong)
    if (granted.isCompleted) Future.successful(taken(chunk))
    else granted.map { _ =>
      metrics.blockedNanos(runtime.timer.nowNanos - begunNanos)
      taken(chunk)
    }(runtime.executor)
  }

  def flush(): Unit = flushIf(_ => true)

  /** Bytes of this uploader that wait or are being uploaded. */
  def bytesInFlight: Long = held.get

  private def taken(chunk: Chunk): PendingChunk = {
    held.addAndGet(chunk.size.toLong)
    val pending = synchronized {
      if (shortage.isEmpty) shortage = Some(budget.onShortage(() => flush()))
      open.add(chunk)
    }
    uploadIfDue()
    pending
  }

  private def uploadIfDue(): Unit = {
    // A blocked put flushes only once, maybe before this chunk came.
    val due = budget.waiters > 0 || synchronized(open.size >= options.persistSizeThreshold)
    if (due || !armDelay()) flush()
  }

  /** Schedules the upload of the open group; false if the timer is closed. */
  private def armDelay(): Boolean = synchronized {
    if (delay.isEmpty) {
      val group = open
      delay =
        try Some(runtime.timer.schedule(options.persistDelayMs)(() => flushIf(_ eq group)))
        catch { case NonFatal(_) => None }
    }
    delay.isDefined
  }

  private def flushIf(isDue: ChunkGroup => Boolean): Unit =
    synchronized(Option.when(isDue(open))(takeOpenGroup())).foreach(upload)

  /** Lock held. */
  private def takeOpenGroup(): ChunkGroup = {
    val group = open
    (delay ++ shortage).foreach(_.cancel())
    delay = None
    shortage = None
    open = newGroup()
    group
  }

  private def newGroup() = new ChunkGroup(release, delete)

  private def delete(file: String, mayAppearLater: Boolean): Unit = {
    discarder.discard(new Path(base, file))
    if (mayAppearLater) discarder.discardLater(new Path(base, file))
  }

  private def release(bytes: Long): Unit = {
    held.addAndGet(-bytes)
    budget.release(bytes)
  }

  private def upload(group: ChunkGroup): Unit = {
    val chunks = group.seal()
    if (chunks.nonEmpty) {
      val file = files.name(begun.incrementAndGet())
      def fail(error: Throwable): Unit = {
        metrics.failed()
        group.failed(_ => new UploadFailed(file, chunks.map(_.label), error))
      }
      metrics.started()
      try start(group, file, chunks, fail)
      catch {
        case error: Throwable =>
          fail(error)
          if (!NonFatal(error)) throw error
      }
    }
  }

  private def start(group: ChunkGroup, file: String, chunks: Seq[Chunk], fail: Throwable => Unit): Unit = {
    val (content, parts) = files.encode(file, chunks)
    val path = new Path(base, file)
    storage.run(Put(path, content), options.commitTimeoutMs, group.attemptEnded(file, _)).onComplete { result =>
      result.get match {
        case Outcome.Done(_) =>
          metrics.succeeded()
          metrics.bytes(content.length)
          group.uploaded(file, parts)
        case Outcome.Failed(error) => fail(error)
        case Outcome.Unknown(error) =>
          fail(error)
          discarder.discardLater(path)
      }
    }(runtime.executor)
  }
}
