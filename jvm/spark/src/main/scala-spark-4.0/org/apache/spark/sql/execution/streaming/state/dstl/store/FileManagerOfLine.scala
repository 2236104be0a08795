package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.Map

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot

/**
 * Spark's manager of a store's snapshots as it is made, and asked to save and to delete, in a form that no line of Spark changes.
 *
 * @param snapshotFiles through what SST files and zips are read and written
 */
private[store] abstract class FileManagerOfLine(
    dfsRootDir: String,
    localTempDir: File,
    hadoopConf: Configuration,
    rocksDBConf: RocksDBConf,
    loggingId: String,
    snapshotFiles: FileSystem
) extends RocksDBFileManager(
      dfsRootDir,
      localTempDir,
      hadoopConf,
      rocksDBConf.compressionCodec,
      loggingId
    ) {
  FileManagerOfLine.fileSystem.set(this, snapshotFiles)

  /**
   * Told of each snapshot that is to be saved.
   *
   * @param save does it, with these files of the snapshot
   */
  protected def saving(checkpointDir: File, version: Long, files: Map[String, RocksDBSnapshotFile])(
      save: Map[String, RocksDBSnapshotFile] => Unit
  ): Unit

  /** Told when old versions are to be deleted, which `delete` does for plain files. */
  protected def deletingOld(delete: () => Unit): Unit

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

  /** Saves it as Spark does, without telling. */
  protected def saveAsSpark(snapshot: RocksDBSnapshot): Unit = super.saveCheckpointToDfs(
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

private object FileManagerOfLine {

  // Spark asks Hadoop for one while it constructs the manager, and nothing leads to another. `reflection.uses` names it.
  private val fileSystem = {
    val field = classOf[RocksDBFileManager].getDeclaredField("fs")
    field.setAccessible(true)
    field
  }
}
