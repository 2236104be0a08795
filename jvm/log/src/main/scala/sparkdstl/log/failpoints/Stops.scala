package sparkdstl.log.failpoints

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.{LogFileReader, LogLayout}
import sparkdstl.log.request.{QueryStorage, StorageClient}
import sparkdstl.log.storage.ObjectTail
import sparkdstl.log.storage.StorageOperation.{Create, Put}

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
  def beforeCommitEntries(storage: QueryStorage): QueryStorage =
    if (!FailPoints.areSet) storage
    else
      storage.copy(checkpoint = storage.checkpoint.pausing {
        case Create(path, _) if path.getParent == storage.location.commits =>
          LogLayout.parseBatch(path.getName).fold(Future.unit)(before("driver.before-commit-entry", _)(Future.unit))
        case _ => Future.unit
      })

  /** An executor's storage, with a stop before a data file is written: its first segment has the batch. */
  def beforeUploads(storage: QueryStorage): StorageClient =
    if (!FailPoints.areSet) storage.log
    else
      storage.log.pausing {
        case Put(path, content) =>
          val name = storage.location.base.toUri.relativize(path.toUri).getPath
          val index = LogFileReader.readDataFile(path, name, ObjectTail(content.toArray, content.length))
          val batch = index.toOption.flatMap(_.entries.headOption).map(_.key.batch)
          batch.fold(Future.unit)(before("executor.before-upload", _)(Future.unit))
        case _ => Future.unit
      }
}
