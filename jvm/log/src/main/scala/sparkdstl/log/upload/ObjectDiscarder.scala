package sparkdstl.log.upload

import java.util.concurrent.{Executor, RejectedExecutionException}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import sparkdstl.log.retry.UploadMetrics
import sparkdstl.log.storage.LogStorage

/**
 * Deletes objects in the background, those that have gathered meanwhile in one call to storage. What cannot be deleted is
 * logged and counted, and troubles nobody else: it costs space, and a later run looks for what was left behind.
 */
final class ObjectDiscarder(storage: LogStorage, executor: Executor, metrics: UploadMetrics) {

  // Guarded by this; when it is not empty, a deletion is on its way.
  private val waiting = mutable.LinkedHashSet.empty[Path]

  /** Deletes `path` some time. There need be nothing. */
  def discard(path: Path): Unit = discard(Seq(path))

  /** Deletes `paths` some time. There need be nothing. */
  def discard(paths: Seq[Path]): Unit = {
    val first = synchronized {
      val wasEmpty = waiting.isEmpty
      waiting ++= paths
      wasEmpty && waiting.nonEmpty
    }
    if (first)
      try executor.execute(() => delete(take()))
      catch { case e: RejectedExecutionException => failed(take(), e) }
  }

  private def take(): Seq[Path] = synchronized {
    val taken = waiting.toSeq
    waiting.clear()
    taken
  }

  private def delete(paths: Seq[Path]): Unit =
    try {
      storage.delete(paths)
      metrics.discardedObjects.add(paths.size.toLong)
    } catch { case NonFatal(e) => failed(paths, e) }

  private def failed(paths: Seq[Path], error: Throwable): Unit = {
    metrics.discardFailures.add(paths.size.toLong)
    ObjectDiscarder.log.warn(
      s"Could not delete ${paths.size} object(s) that nobody needs, such as ${paths.head}",
      error
    )
  }
}

private object ObjectDiscarder {
  private val log = LoggerFactory.getLogger(classOf[ObjectDiscarder])
}
