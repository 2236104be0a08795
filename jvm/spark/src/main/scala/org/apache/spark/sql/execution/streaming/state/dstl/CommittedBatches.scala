package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.FileNotFoundException

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.{LogLayout, RunHistory}
import sparkdstl.log.read.LogIndexLoader
import sparkdstl.log.storage.LogStorage

/** What a checkpoint's commit entries say: the last committed batch (-1 if none) and which batches are in the log. */
private[dstl] final case class CommittedBatches(last: Long, history: RunHistory)

private[dstl] object CommittedBatches {

  /** Commit entries with checkpoint ids grow with the number of stores: 100 bytes each. */
  private val MaxEntryLength = 256L * 1024 * 1024

  /**
   * Reads it from storage: the newest commit entry names its batch log, and that one repeats the history before it. If
   * the newest entry is stock Spark's, the newest batch log that its commit entry names tells.
   *
   * @param base where the log is
   */
  def load(root: Path, base: Path, checkpoint: LogStorage, log: LogStorage): CommittedBatches = {
    val commits = new Path(root, "commits")
    val batches = checkpoint.list(commits).flatMap(_.path.getName.toLongOption)
    if (batches.isEmpty) CommittedBatches(-1, RunHistory.empty)
    else {
      val last = batches.max
      val history = historyAt(commits, base, last, checkpoint, log).getOrElse {
        log.list(new Path(base, LogLayout.BatchesDirectory)).flatMap(o => LogLayout.parseBatchLog(o.path.getName))
          .map(_._1).filter(_ < last).distinct.sorted(Ordering.Long.reverse).iterator
          .flatMap(historyAt(commits, base, _, checkpoint, log)).nextOption().getOrElse(RunHistory.empty)
      }
      CommittedBatches(last, history)
    }
  }

  /** The note of a commit entry, if there is an entry and it has one. */
  def note(commits: Path, batch: Long, checkpoint: LogStorage): Option[CommitNote] = {
    val entry = new Path(commits, batch.toString)
    try CommitNote.parse(entry, checkpoint.read(entry, MaxEntryLength))
    catch { case _: FileNotFoundException => None }
  }

  private def historyAt(
      commits: Path,
      base: Path,
      batch: Long,
      checkpoint: LogStorage,
      log: LogStorage
  ): Option[RunHistory] =
    note(commits, batch, checkpoint).filter(_.hasBatchLog).map { note =>
      val file = new Path(base, LogLayout.batchLog(batch, note.run))
      try LogIndexLoader.load(log, file).history.append(batch, note.run)
      catch {
        case e: FileNotFoundException =>
          val recorded = note.base.fold("the checkpoint's directory dstl")(path => path)
          throw LogErrors.missingObject(file, s"commit entry $batch of $commits (written with the log in $recorded)", e)
      }
    }
}
