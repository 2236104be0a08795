package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.Map

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
      of.hadoopConf,
      of.conf.compressionCodec,
      of.loggingId
    ) with SavedSnapshots {
  FileManagerOfLine.fileSystem.set(this, snapshotFiles)

  override def saveCheckpointToDfs(
      checkpointDir: File,
      version: Long,
      numKeys: Long,
      numInternalKeys: Long,
      fileMapping: Map[String, RocksDBSnapshotFile],
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

  override def deleteOldVersions(retain: Int, minVersionsToDelete: Long): Unit =
    deletingOld(() => super.deleteOldVersions(retain, minVersionsToDelete))
}

private object FileManagerOfLine {

  // Spark asks Hadoop for one while it constructs the manager, and nothing leads to another. `reflection.uses` names it.
  private val fileSystem = {
    val field = classOf[RocksDBFileManager].getDeclaredField("fs")
    field.setAccessible(true)
    field
  }
}
