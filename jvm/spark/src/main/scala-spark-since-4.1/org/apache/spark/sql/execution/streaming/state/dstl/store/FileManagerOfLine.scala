package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.Map

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

import org.apache.spark.sql.execution.streaming.state._

/**
 * Spark's manager of a store's snapshots as it is made, and asked to save and to delete, in a form that no line of Spark changes.
 *
 * @param snapshotFiles through what SST files and zips are read and written
 */
private[store] abstract class FileManagerOfLine(
    of: NewRocksDB,
    localTempDir: File,
    snapshotFiles: FileSystem
) extends RocksDBFileManager(
      of.dfsRootDir,
      localTempDir,
      new TaskChecksums(of.conf).configuration(of.hadoopConf),
      of.conf.compressionCodec,
      of.loggingId,
      of.conf.stateStoreConf,
      fileChecksumEnabled = new TaskChecksums(of.conf).isSparksOwn,
      fileChecksumThreadPoolSize = new TaskChecksums(of.conf).threads
    ) with SavedSnapshots {

  override protected def getFileSystem(root: String, configuration: Configuration): FileSystem = snapshotFiles

  override def saveCheckpointToDfs(
      checkpointDir: File,
      version: Long,
      numKeys: Long,
      numInternalKeys: Long,
      fileMapping: Map[String, RocksDBSnapshotFile],
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

  override def deleteOldVersions(retain: Int, maxVersionsToDelete: Int, minVersionsToDelete: Long): Unit =
    deletingOld(() => super.deleteOldVersions(retain, maxVersionsToDelete, minVersionsToDelete))
}
