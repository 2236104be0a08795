package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.FileNotFoundException
import java.util.UUID
import java.util.concurrent.{CompletableFuture, Executor}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogLayout, RunHistory, SegmentKey}
import sparkdstl.log.read.LogIndexLoader
import sparkdstl.log.storage.StoredObject
import sparkdstl.log.upload.ObjectDiscarder

import org.apache.spark.internal.Logging

/**
 * Lets go of log files: those whose last segment Spark's retention has dropped, and those that runs before this one left
 * behind without committing them. Nothing is deleted before it is known what is wanted.
 */
private[dstl] final class Truncation(
    paths: QueryPaths,
    run: UUID,
    catalog: LogCatalog,
    discarder: ObjectDiscarder,
    background: Executor
) extends Logging {

  /** Completes when the catalog knows every segment that was in the log at the run's start. */
  val loaded: CompletableFuture[Unit] = new CompletableFuture[Unit]

  def isLoaded: Boolean = loaded.isDone && !loaded.isCompletedExceptionally

  /** Reads, in the background, the indexes of the batch logs that `history` names and that are still there. */
  def load(history: RunHistory): Unit =
    if (history.ranges.isEmpty) loaded.complete(()): Unit
    else background.execute { () =>
      try {
        val there = paths.log.list(new Path(paths.base, LogLayout.BatchesDirectory)).flatMap { stored =>
          LogLayout.parseBatchLog(stored.path.getName).map { case (batch, by) => (batch, by, stored.modifiedMillis) }
        }
        there.filter { case (batch, by, _) => history.runOf(batch).contains(by) }.sortBy(_._1).foreach {
          case (batch, by, modifiedAt) => add(LogLayout.batchLog(batch, by), modifiedAt)
        }
        loaded.complete(()): Unit
      } catch {
        case NonFatal(e) =>
          logWarning(
            s"Could not read which segments are in the log at ${paths.base}; nothing of it is deleted in this run",
            e
          )
          loaded.completeExceptionally(e): Unit
      }
    }

  /** Drops a segment, and the files that only it needed; false if it is not in the log. */
  def release(key: SegmentKey): Boolean = {
    val free = catalog.release(key)
    free.filter(_.nonEmpty).foreach(files => discarder.discard(files.map(new Path(paths.base, _))))
    free.nonEmpty
  }

  /**
   * Deletes, in the background, what earlier runs wrote and never committed. To be called once this run has committed
   * `batch`, with a batch log.
   *
   * Nobody works on a batch before the one before it is committed. So what other runs wrote before our batch log was
   * there is for batches up to ours, and of these it is known which run committed them. What is younger is left alone:
   * this driver may be a late one, and the files those of its successor. Times are compared by storage's own clock.
   */
  def sweep(batch: Long, history: RunHistory): Unit =
    loaded.thenRun { () =>
      background.execute { () =>
        try {
          val orphans = orphansOf(batch, history)
          if (orphans.nonEmpty) {
            logInfo(s"Deleting ${orphans.size} files in ${paths.base} that earlier runs left uncommitted")
            discarder.discard(orphans)
          }
        } catch { case NonFatal(e) => logWarning(s"Could not look for files left behind in ${paths.base}", e) }
      }
    }: Unit

  private def add(file: String, modifiedAt: Long): Unit =
    try catalog.add(file, LogIndexLoader.load(paths.log, new Path(paths.base, file)), modifiedAt)
    catch { case _: FileNotFoundException => logDebug(s"$file was deleted meanwhile") }

  private def orphansOf(batch: Long, history: RunHistory): Seq[Path] = {
    val logs = paths.log.list(new Path(paths.base, LogLayout.BatchesDirectory))
    val ourName = new Path(LogLayout.batchLog(batch, run)).getName
    val others = logs.find(_.path.getName == ourName).toSeq.flatMap { ours =>
      orphanedDataFiles(ours.modifiedMillis) ++ orphanedTemporaries(ours.modifiedMillis)
    }
    orphanedBatchLogs(logs, batch, history) ++ others
  }

  private def orphanedBatchLogs(logs: Seq[StoredObject], batch: Long, history: RunHistory): Seq[Path] =
    logs.filter { stored =>
      LogLayout.parseBatchLog(stored.path.getName).exists { case (of, by) =>
        of <= batch && by != run && !history.runOf(of).contains(by)
      }
    }.map(_.path)

  private def orphanedDataFiles(beforeMillis: Long): Seq[Path] =
    paths.log.listRecursively(new Path(paths.base, LogLayout.DataDirectory)).filter { stored =>
      val owner = stored.path.getParent.getName
      owner != run.toString && stored.modifiedMillis < beforeMillis &&
      !catalog.isReferenced(s"${LogLayout.DataDirectory}/$owner/${stored.path.getName}")
    }.map(_.path)

  private def orphanedTemporaries(beforeMillis: Long): Seq[Path] =
    paths.log.listUnpublished(paths.base)
      .filter(stored => stored.modifiedMillis < beforeMillis && !stored.path.toString.contains(run.toString))
      .map(_.path)
}
