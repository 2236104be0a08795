package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.Executor

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.storage.LogStorage

import org.apache.spark.internal.Logging

/**
 * Deletes log files in the background, many with one request where storage can do that. A failure costs space, not
 * correctness: it is logged, and the next run's sweep finds what is left.
 *
 * @param background runs the deletions
 */
private[dstl] final class Discarder(val background: Executor) extends Logging {

  // Guarded by this; empty means that no deletion is scheduled.
  private val waiting = mutable.LinkedHashMap.empty[LogStorage, mutable.LinkedHashSet[Path]]

  def discard(storage: LogStorage, paths: Seq[Path]): Unit = if (paths.nonEmpty) {
    val idle = synchronized {
      val wasIdle = waiting.isEmpty
      waiting.getOrElseUpdate(storage, mutable.LinkedHashSet.empty) ++= paths
      wasIdle
    }
    if (idle) background.execute(() => deleteWaiting())
  }

  private def deleteWaiting(): Unit = {
    val batches = synchronized {
      val taken = waiting.view.mapValues(_.toSeq).toSeq
      waiting.clear()
      taken
    }
    batches.foreach { case (storage, paths) =>
      try storage.delete(paths)
      catch {
        case NonFatal(e) =>
          logWarning(s"Could not delete ${paths.size} log files that nothing needs, such as ${paths.head}", e)
      }
    }
  }
}
