// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.Map

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot

/**
 * The constructor of Spark's manager of a store's snapshots, and its methods that save and delete.
 *
 * @param snapshotFiles the file system of SST files and zips
 */
private[store] abstract class FileManagerShims(
    of: RocksDBArguments,
    localTempDir: File,
    snapshotFiles: FileSystem
) extends RocksDBFileManager(
      of.dfsRootDir,
      localTempDir,
      of.hadoopConf,
      of.conf.compressionCodec,
      of.loggingId,
      of.conf.stateStoreConf,
      fileChecksumEnabled = of.conf.fileChecksumEnabled,
      fileChecksumThreadPoolSize = Some(TaskChecksumShims.Threads)
    ) { this: DstlRocksDBFileManager =>
  TaskChecksumShims.onCallingThread(this)

  override protected def getFileSystem(root: String, configuration: Configuration): FileSystem = snapshotFiles

  override def saveCheckpointToDfs(
      checkpointDir: File,
      version: Long,
      numKeys: Long,
      numInternalKeys: Long,
      fileMapping: SnapshotFileMap,
      columnFamilyMapping: Option[Map[String, ColumnFamilyInfo]],
      maxColumnFamilyId: Option[Short],
      checkpointUniqueId: Option[String],
      verifyNonEmptyFilesInZip: Boolean
  ): Unit = saving(checkpointDir, version, fileMapping) { files =>
    super.saveCheckpointToDfs(
      checkpointDir,
      version,
      numKeys,
      numInternalKeys,
      files,
      columnFamilyMapping,
      maxColumnFamilyId,
      checkpointUniqueId,
      verifyNonEmptyFilesInZip
    )
  }

  /** Makes another manager write the zip of a snapshot. */
  protected def pack(snapshot: RocksDBSnapshot, by: RocksDBFileManager): Unit = by.saveCheckpointToDfs(
    snapshot.checkpointDir,
    snapshot.version,
    snapshot.numKeys,
    snapshot.numInternalKeys,
    snapshot.fileMapping,
    Some(snapshot.columnFamilyMapping),
    Some(snapshot.maxColumnFamilyId),
    snapshot.uniqueId,
    of.conf.verifyNonEmptyFilesInZip
  )

  override def deleteOldVersions(retain: Int, maxVersionsToDelete: Int, minVersionsToDelete: Long): Unit =
    deletingOld(() => super.deleteOldVersions(retain, maxVersionsToDelete, minVersionsToDelete))
}
