// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import scala.collection.mutable
import scala.concurrent.ExecutionContext
import scala.util.{Failure, Success}

import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Deletes objects in the background, with one request for a page of those that wait, and retries failures with growing delays.
 * Objects that stay cost only space: the sweep of a later run deletes them. Thread-safe.
 */
final class ObjectDiscarder(
    storage: StorageClient,
    runtime: ProtocolRuntime,
    timeoutMillis: Long,
    metrics: UploadMetrics
) {
  private val log = LoggerFactory.getLogger(classOf[ObjectDiscarder])

  private final val PageSize = 1000
  private final val MaxFailed = 10000
  private final val FirstDelayMillis = 1000L
  private final val MaxDelayMillis = 300000L
  private final val UnknownMillis = 60000L
  private implicit val executor: ExecutionContext = runtime.executor

  // All guarded by this. An object is in at most one of the first three.
  private val waiting = mutable.LinkedHashSet.empty[Path]
  private val failed = mutable.LinkedHashSet.empty[Path]
  private var underWay = Seq.empty[Path]
  private var failuresInARow = 0

  def discard(path: Path): Unit = discard(Seq(path))

  /** Deletes `paths` in the background; they need not exist. */
  def discard(paths: Seq[Path]): Unit = {
    synchronized(waiting ++= paths): Unit
    deleteWhatWaits()
  }

  /** Deletes `path` later, when writes of it are likely to have ended. */
  def discardLater(path: Path): Unit = after(UnknownMillis)(() => discard(path))

  def pending: Int = synchronized(waiting.size + failed.size + underWay.size)

  private def deleteWhatWaits(): Unit = {
    val paths = synchronized {
      if (underWay.isEmpty) {
        underWay = waiting.take(PageSize).toVector
        waiting --= underWay
        underWay
      } else Nil
    }
    if (paths.nonEmpty) storage.delete(paths, timeoutMillis).flatMap(_.asFuture).onComplete { result =>
      synchronized { underWay = Nil }
      result match {
        case Success(_) =>
          metrics.discardedObjects(paths.size.toLong)
          synchronized { failuresInARow = 0 }
        case Failure(error) => notDeleted(paths, error)
      }
      deleteWhatWaits()
    }
  }

  private def notDeleted(paths: Seq[Path], error: Throwable): Unit = {
    metrics.discardFailures(paths.size.toLong)
    val (failures, givenUp) = synchronized {
      failuresInARow += 1
      val kept = paths.take(math.max(0, MaxFailed - failed.size))
      failed ++= kept
      (failuresInARow, paths.size - kept.size)
    }
    metrics.discardsGivenUp(givenUp.toLong)
    log.warn(
      s"Could not delete ${paths.size} unneeded object(s), such as ${paths.head}" +
        (if (givenUp > 0) s"; $givenUp stay on storage" else "; they are tried again"),
      error
    )
    after(math.min(MaxDelayMillis, FirstDelayMillis << math.min(failures - 1, 20))) { () =>
      synchronized {
        waiting ++= failed
        failed.clear()
      }
      deleteWhatWaits()
    }
  }

  private def after(delayMillis: Long)(action: () => Unit): Unit = runtime.after(delayMillis).onComplete {
    case Success(_) => action()
    case Failure(error) => log.warn("Unneeded objects stay on storage", error)
  }
}
