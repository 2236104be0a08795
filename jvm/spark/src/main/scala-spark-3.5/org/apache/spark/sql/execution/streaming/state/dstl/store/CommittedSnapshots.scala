package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBFileManager, RocksDBFileMappings}

/**
 * Spark's manager of a store's snapshots, which saves those alone that are of a version as it was committed. Of others Spark
 * makes another one some versions later; the log is kept meanwhile.
 *
 * @param nextVersion that of the changes under way
 * @param committedBy whose changes led to a version
 */
private[store] final class CommittedSnapshots(
    dfsRootDir: String,
    localTempDir: File,
    hadoopConf: Configuration,
    codecName: String,
    loggingId: String,
    nextVersion: () => Long,
    committedBy: Long => CommittedBy
) extends RocksDBFileManager(dfsRootDir, localTempDir, hadoopConf, codecName, loggingId) {
  import CommittedSnapshots._

  // Guarded by this; the newest first. Spark hands the same mappings back with the snapshot, and has others after each load.
  private var made = List.empty[Made]

  /** Spark calls it when it makes a snapshot, in the commit of a task. */
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
    else logInfo(s"The snapshot of version $version is not saved: it is not known to be of what was committed")

  /** Who made the snapshot; those before it are forgotten. */
  private def madeBy(version: Long, mappings: RocksDBFileMappings): Option[Long] = synchronized {
    val by = made.find(of => of.version == version && (of.mappings eq mappings)).map(_.attempt)
    made = made.filter(_.version > version)
    by
  }

  private def isCommitted(version: Long, by: Option[Long]): Boolean = committedBy(version) match {
    case CommittedBy.PlainFile => true
    case CommittedBy.Attempt(winner) => by.contains(winner)
    // It may be in a moment. Of the next one more will be known.
    case CommittedBy.Nobody => false
  }
}

private object CommittedSnapshots {
  private final case class Made(mappings: RocksDBFileMappings, version: Long, attempt: Long)
}

/** What Spark's RocksDB of this line keeps to itself, and no method leads to. `reflection.uses` names them. */
private[store] object RocksDBFields {
  val fileManager: java.lang.reflect.Field = accessible("fileManager")
  val loadedVersion: java.lang.reflect.Field = accessible("loadedVersion")

  private def accessible(name: String) = {
    val field = classOf[RocksDB].getDeclaredField(name)
    field.setAccessible(true)
    field
  }
}
