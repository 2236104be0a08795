package sparkdstl.log.upload

import java.util.concurrent.{Executor, RejectedExecutionException}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import sparkdstl.log.retry.UploadMetrics
import sparkdstl.log.storage.LogStorage

/** Deletes objects in the background. What cannot be deleted is logged and counted, and troubles nobody else. */
final class ObjectDiscarder(storage: LogStorage, executor: Executor, metrics: UploadMetrics) {

  /** Deletes `path` some time. There need be nothing. */
  def discard(path: Path): Unit =
    try executor.execute(() => delete(path))
    catch { case e: RejectedExecutionException => failed(path, e) }

  private def delete(path: Path): Unit =
    try {
      storage.delete(Seq(path))
      metrics.discardedObjects.increment()
    } catch { case NonFatal(e) => failed(path, e) }

  private def failed(path: Path, error: Throwable): Unit = {
    metrics.discardFailures.increment()
    ObjectDiscarder.log.warn(s"Could not delete $path, which nobody needs", error)
  }
}

private object ObjectDiscarder {
  private val log = LoggerFactory.getLogger(classOf[ObjectDiscarder])
}
