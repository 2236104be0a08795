package sparkdstl.log.failpoints

import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.storage.StorageOperation.{Create, Put}
import sparkdstl.log.upload.{ChunkFileEncoder, EncodedFile}
import sparkdstl.log.worker.SegmentChunk

/** Fail points on threads that others share: a stopped operation waits on a thread of its own. */
object Stops {
  private val ownThread: ExecutionContext = ExecutionContext.fromExecutor { task =>
    val thread = new Thread(task, "dstl-fail-point")
    thread.setDaemon(true)
    thread.start()
  }

  /** Runs `action` after the fail point. */
  def before[T](name: String, batch: Long)(action: => Future[T]): Future[T] =
    if (FailPoints.areSet) Future(FailPoints.hit(name, batch))(ownThread).flatMap(_ => action)(ownThread) else action

  /** The driver's storage, with a stop before a commit entry is created. */
  def beforeCommitEntries(location: QueryLocation, storage: StorageClient): StorageClient =
    if (!FailPoints.areSet) storage
    else
      storage.pausing {
        case Create(path, _) if path.getParent == location.commits =>
          LogLayout.parseBatch(path.getName).fold(Future.unit)(before("driver.before-commit-entry", _)(Future.unit))
        case _ => Future.unit
      }
}

/** An executor's uploads, with a stop before a data file is written. A file's batch is noted when it is encoded. */
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
      storage.pausing {
        case Put(path, _) if batches.containsKey(path.getName) =>
          Stops.before("executor.before-upload", batches.get(path.getName))(Future.unit)
        case _ => Future.unit
      }
}
