package sparkdstl.log.failpoints

import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{ExecutionContext, Future}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.request.{Creation, ForwardingStorageClient, Outcome, StorageClient}
import sparkdstl.log.storage.{ObjectTail, Payload}
import sparkdstl.log.upload.{ChunkFileEncoder, EncodedFile}
import sparkdstl.log.worker.SegmentChunk

/** Fail points of what happens on threads that others share: what is stopped waits on a thread of its own. */
object Stops {
  private val ownThread: ExecutionContext = ExecutionContext.fromExecutor { task =>
    val thread = new Thread(task, "dstl-fail-point")
    thread.setDaemon(true)
    thread.start()
  }

  /** Does something once the fail point lets it. */
  def before[T](name: String, batch: Long)(what: => Future[T]): Future[T] =
    if (FailPoints.areSet) Future(FailPoints.hit(name, batch))(ownThread).flatMap(_ => what)(ownThread) else what

  /** The driver's storage, with a stop before a commit entry is created. */
  def beforeCommitEntries(location: QueryLocation, storage: StorageClient): StorageClient =
    if (!FailPoints.areSet) storage
    else
      new StoppableWrites(
        storage,
        path =>
          Option.when(path.getParent == location.commits)(path.getName).flatMap(LogLayout.parseBatch)
            .map("driver.before-commit-entry" -> _)
      )
}

/**
 * An executor's uploads, with a stop before a data file is written. The file's path does not tell its batch, so that is noted when
 * it is encoded.
 */
final class StoppableUploads(encoder: ChunkFileEncoder[SegmentChunk], storage: StorageClient) {
  private val batches = new ConcurrentHashMap[String, Long]

  val encoding: ChunkFileEncoder[SegmentChunk] =
    if (!FailPoints.areSet) encoder
    else
      new ChunkFileEncoder[SegmentChunk] {
        override def encode(name: String, chunks: Seq[SegmentChunk]): EncodedFile = {
          batches.put(new Path(name).getName, chunks.head.key.batch): Unit
          encoder.encode(name, chunks)
        }
      }

  val writing: StorageClient =
    if (!FailPoints.areSet) storage
    else
      new StoppableWrites(
        storage,
        path => Option.when(batches.containsKey(path.getName))("executor.before-upload" -> batches.get(path.getName))
      )
}

/**
 * Storage whose writes tests can stop.
 *
 * @param pointOf
 *   the fail point and the batch of what is written there
 */
final class StoppableWrites(storage: StorageClient, pointOf: Path => Option[(String, Long)])
    extends ForwardingStorageClient(storage) {

  override def put(path: Path, content: Payload, timeoutMillis: Long)(attemptEnded: () => Unit): Future[Outcome[Unit]] =
    stoppable(path)(storage.put(path, content, timeoutMillis)(attemptEnded))

  override def replace(path: Path, content: Payload, timeoutMillis: Long): Future[Outcome[Unit]] =
    stoppable(path)(storage.replace(path, content, timeoutMillis))

  override def create(
      path: Path,
      content: Payload,
      timeoutMillis: Long
  )(isOurs: ObjectTail => Boolean): Future[Outcome[Creation]] =
    stoppable(path)(storage.create(path, content, timeoutMillis)(isOurs))

  private def stoppable[T](path: Path)(write: => Future[Outcome[T]]): Future[Outcome[T]] =
    pointOf(path).fold(write) { case (name, batch) =>
      Stops.before(name, batch)(write).recover { case NonFatal(e) => Outcome.Failed(e) }(ExecutionContext.parasitic)
    }
}
