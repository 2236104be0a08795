// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.error.ProtocolErrors

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBConf}
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources
import org.apache.spark.util.Utils

/**
 * Spark's RocksDB, which records the task attempt that made its local state: state that was not committed is loaded again before
 * further changes, and never becomes a snapshot. Spark decides when to make snapshots, and writes them as plain files.
 *
 * @param loggingId names the store in logs
 * @param store     in the log; None if its directory is not in a checkpoint
 */
private[dstl] final class DstlRocksDB(
    dfsRootDir: String,
    conf: RocksDBConf,
    localRootDir: File,
    hadoopConf: Configuration,
    loggingId: String,
    override protected val resources: ProcessResources,
    override protected val store: Option[LoggedStore]
) extends RocksDB(dfsRootDir, conf, localRootDir, hadoopConf, loggingId) with TrackedState with LockedDatabaseShims {

  RocksDBFields.fileManager.set(
    this,
    new CommittedSnapshots(
      dfsRootDir,
      Utils.createDirectory(localRootDir.getAbsolutePath, "fileManager"),
      hadoopConf,
      conf.compressionCodec,
      loggingId,
      () => loadedVersion + 1,
      store
    )
  )
  register()

  override def load(version: Long, readOnly: Boolean): RocksDB = {
    lock()
    loadTracked(loggingId, version, loadedVersion == version)(RocksDBFields.loadedVersion.setLong(this, -1L)) {
      current =>
        if (!current.isLocal) refuseSnapshotsInLog()
        super.load(version, readOnly)
    }
  }

  /** This Spark ignores snapshots in the log, which a later Spark writes, and would lack the changes before them. */
  private def refuseSnapshotsInLog(): Unit =
    for (newest <- store.flatMap(_.versions.snapshots.lastOption))
      throw ProtocolErrors.snapshotOfLaterSpark(new Path(dfsRootDir, s"${newest.version}.zip"), SPARK_VERSION)

  override def put(key: Array[Byte], value: Array[Byte]): Unit = {
    noteChange()
    super.put(key, value)
  }

  override def remove(key: Array[Byte]): Unit = {
    noteChange()
    super.remove(key)
  }

  override def commit(): Long = {
    // Spark releases the store within its commit; another attempt can change it afterwards.
    remember(loadedVersion + 1): Unit
    val version = super.commit()
    noteCommitted()
    version
  }

  override def close(): Unit = {
    unregister()
    super.close()
  }

  override protected def lockArguments: Seq[AnyRef] = Nil

  private def loadedVersion: Long = RocksDBFields.loadedVersion.getLong(this)
}
