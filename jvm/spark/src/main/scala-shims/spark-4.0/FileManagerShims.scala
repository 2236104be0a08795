// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.Map

import org.apache.commons.lang3.reflect.FieldUtils
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
      of.loggingId
    ) { this: DstlRocksDBFileManager =>
  FileManagerShims.fileSystem.set(this, snapshotFiles)

  override def saveCheckpointToDfs(
      checkpointDir: File,
      version: Long,
      numKeys: Long,
      numInternalKeys: Long,
      fileMapping: SnapshotFileMap,
      columnFamilyMapping: Option[Map[String, ColumnFamilyInfo]],
      maxColumnFamilyId: Option[Short],
      checkpointUniqueId: Option[String]
  ): Unit = saving(checkpointDir, version, fileMapping) { files =>
    super.saveCheckpointToDfs(
      checkpointDir,
      version,
      numKeys,
      numInternalKeys,
      files,
      columnFamilyMapping,
      maxColumnFamilyId,
      checkpointUniqueId
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
    snapshot.uniqueId
  )

  override def deleteOldVersions(retain: Int, minVersionsToDelete: Long): Unit =
    deletingOld(() => super.deleteOldVersions(retain, minVersionsToDelete))
}

private object FileManagerShims {

  // Spark's constructor has no argument for the file system.
  private val fileSystem = FieldUtils.getDeclaredField(classOf[RocksDBFileManager], "fs", true)
}
