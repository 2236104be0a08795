package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state._

/**
 * What Spark tells of a store beside where it is.
 *
 * @param eventForwarder reports uploads of snapshots
 * @param uniqueId       under which its memory is counted
 */
private[dstl] final case class ToldOfStore(eventForwarder: Option[RocksDBEventForwarder], uniqueId: Option[String])

/** Spark's RocksDB as it is made, in a form that no line of Spark changes. */
private[store] abstract class RocksDBOfLine(of: NewRocksDB)
    extends RocksDB(
      of.dfsRootDir,
      of.conf,
      of.localRootDir,
      of.hadoopConf,
      of.loggingId,
      of.useColumnFamilies,
      of.enableStateStoreCheckpointIds,
      of.partitionId,
      of.told.eventForwarder,
      of.told.uniqueId
    ) {

  /** Makes the manager of the store's files. Called while this is constructed. */
  protected def managerOfFiles(localTempDir: File): RocksDBFileManager

  override protected def createFileManager(
      dfsRootDir: String,
      localTempDir: File,
      hadoopConf: Configuration,
      codecName: String,
      loggingId: String,
      storeConf: StateStoreConf
  ): RocksDBFileManager = managerOfFiles(localTempDir)
}
