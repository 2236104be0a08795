// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.CommitEntry
import sparkdstl.log.runtime.Waiting
import sparkdstl.log.storage.ObjectTail

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.driver.{DrivenRun, DriverSide, SkippedBatch, StreamThread}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{Checkpoint, CheckpointFiles}

/**
 * `<root>/commits`: creating an entry commits its batch, and an entry carries the batch's log file. The directory is listed only
 * after the run has claimed its epoch, because the listing decides which batch is next.
 */
private[files] final class CommitsDirectory(
    checkpoint: Checkpoint,
    files: CheckpointFiles,
    driver: Option[DriverSide],
    waiting: Waiting
) extends QueryDirectory(checkpoint, files, driver) {
  import checkpoint.root

  // The run that belongs to this file manager, from its first commit entry on.
  @volatile private var owned: Option[DrivenRun] = None

  override def create(entry: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    batchOf(entry).fold(super.create(entry, overwrite)) { batch =>
      PublishedFile(
        commit(entry, batch, _),
        () => throw new IllegalStateException(s"commit entry $entry is larger than ${CheckpointFiles.Limit} bytes")
      )
    }

  /** The barrier: returns once the entry exists with all that the batch has sealed. */
  private def commit(entry: Path, batch: Long, content: Array[Byte]): Unit = owner() match {
    case Some(run) =>
      FailPoints.hit("driver.seals-pending", batch)
      val stores = run.coordinator.sealedStores(batch)
      val lines = StreamThread.query.fold(content)(SkippedBatch.computeAgain(_, batch, stores, content))
      waiting.on(run.commit(batch, lines))
      FailPoints.hit("driver.after-commit-entry", batch)
    case None =>
      // Tasks have sealed changes of the batch with a run that is not the caller's.
      if (active.exists(_.coordinator.hasSeals(batch))) throw ProtocolErrors.unknownRun(batch)
      files.create(entry, content)
      active.foreach(_.noteCommitted())
  }

  /** Spark's lines, which no other read of a large entry checks. */
  override def open(entry: Path): FSDataInputStream =
    if (batchOf(entry).isEmpty) super.open(entry)
    else explained {
      val beginning = files.whole(entry) match {
        case Some(whole) =>
          CommitEntry.inspect(files.qualified(entry), ObjectTail(whole, whole.length.toLong)): Unit
          whole
        case None =>
          files.beginning(entry, CheckpointFiles.Limit).getOrElse(throw new FileNotFoundException(entry.toString))
      }
      CheckpointFiles.inMemory(CommitEntry.forSpark(beginning))
    }

  override def exists(entry: Path): Boolean =
    !batchOf(entry).exists(batch => owned.exists(_.coordinator.knowsAbsent(batch))) && super.exists(entry)

  /** In ascending order: Spark deletes in the order of the listing, and deleting the newest entry first is a rollback. */
  override def list(directory: Path, filter: PathFilter): Array[FileStatus] =
    super.list(directory, filter).sortBy(status => batchOf(status.getPath))

  /** With asynchronous progress or a continuous trigger, Spark writes entries that are none of the run's. */
  override def delete(entry: Path): Unit = (batchOf(entry), driver) match {
    case (Some(batch), Some(side)) =>
      active.filter(run => run.coordinator.isAtWork && !run.coordinator.knowsAbsent(batch)) match {
        case Some(run) => waiting.on(run.coordinator.deleteEntry(batch))
        case None => side.deleteUnowned(checkpoint, batch)
      }
    case _ => super.delete(entry)
  }

  private def active: Option[DrivenRun] = driver.flatMap(_.on(root))

  /** The run of the calling thread, which belongs to the file manager that writes its first commit entry. */
  private def owner(): Option[DrivenRun] = owned.orElse {
    begin()
    owned = driven.filter(_.own())
    owned
  }
}
