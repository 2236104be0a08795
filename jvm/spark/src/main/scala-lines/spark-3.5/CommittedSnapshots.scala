// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File
import java.lang.reflect.Field

import org.apache.commons.lang3.reflect.FieldUtils
import org.apache.hadoop.conf.Configuration

import sparkdstl.log.format.{SegmentKey, SegmentKind}

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBFileManager, RocksDBFileMappings}
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore

/**
 * Spark's manager of a store's snapshots, which saves a snapshot only if the attempt that made it was committed. Otherwise Spark
 * makes another snapshot some versions later, and the log is retained until then.
 *
 * @param nextVersion the version that the current changes make
 * @param store       in the log; None if its directory is not in a checkpoint
 */
private[store] final class CommittedSnapshots(
    dfsRootDir: String,
    localTempDir: File,
    hadoopConf: Configuration,
    codecName: String,
    loggingId: String,
    nextVersion: () => Long,
    store: Option[LoggedStore]
) extends RocksDBFileManager(dfsRootDir, localTempDir, hadoopConf, codecName, loggingId) {
  import CommittedSnapshots._

  // Guarded by this; the newest first. Spark passes the same mappings with the snapshot, and creates others at each load.
  private var made = List.empty[Made]

  /** Called by Spark when a task's commit makes a snapshot. */
  override def captureFileMapReference(): RocksDBFileMappings = {
    val mappings = super.captureFileMapReference()
    Option(TaskContext.get()).foreach { task =>
      synchronized { made = Made(mappings, nextVersion(), task.taskAttemptId()) :: made }
    }
    mappings
  }

  override def saveCheckpointToDfs(
      checkpointDir: File,
      version: Long,
      numKeys: Long,
      capturedFileMappings: RocksDBFileMappings
  ): Unit =
    if (isCommitted(version, madeBy(version, capturedFileMappings)))
      super.saveCheckpointToDfs(checkpointDir, version, numKeys, capturedFileMappings)
    else logInfo(s"The snapshot of version $version is not saved: the attempt that made it may not be committed")

  /** The task attempt that made the snapshot; earlier snapshots are forgotten. */
  private def madeBy(version: Long, mappings: RocksDBFileMappings): Option[Long] = synchronized {
    val by = made.find(of => of.version == version && (of.mappings eq mappings)).map(_.attempt)
    made = made.filter(_.version > version)
    by
  }

  /** Whether storage has the version, by that attempt or as a plain file. Caches may lack an entry that exists by now. */
  private def isCommitted(version: Long, by: Option[Long]): Boolean = (for {
    of <- store
    run = of.run
    if run.worker.exists(_.isCoordinated)
    key <- SegmentKey.parse(of.directory, s"$version${SegmentKind.Changelog.suffix}")
  } yield run.waiting.on(run.reader.isCommitted(key.batch)) &&
    run.waiting.on(run.reader.find(key)).forall(found => by.contains(found.segment.attempt))).getOrElse(true)
}

private object CommittedSnapshots {
  private final case class Made(mappings: RocksDBFileMappings, version: Long, attempt: Long)
}

private[store] object RocksDBFields {
  val fileManager: Field = FieldUtils.getDeclaredField(classOf[RocksDB], "fileManager", true)
  val loadedVersion: Field = FieldUtils.getDeclaredField(classOf[RocksDB], "loadedVersion", true)
}
