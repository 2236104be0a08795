// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.Map

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state._

/**
 * The arguments with which Spark makes the database of a store, by Spark's names.
 *
 * @param later those that only later lines of Spark have
 */
private[dstl] final case class RocksDBArguments(
    dfsRootDir: String,
    conf: RocksDBConf,
    localRootDir: File,
    hadoopConf: Configuration,
    loggingId: String,
    useColumnFamilies: Boolean,
    enableStateStoreCheckpointIds: Boolean,
    partitionId: Int,
    later: LaterArguments
)

/** Our part in the calls of Spark's database. The shims of each line of Spark call it. */
private[store] trait RocksDBHooks extends RocksDB with TrackedState {
  protected type Bytes = Array[Byte]
  protected type Committed = (Long, StateStoreCheckpointInfo)

  /** Takes Spark's lock of the store, before a load. */
  protected def lockForLoad(): Unit

  /** Rolls back under the lock, in a load. */
  protected def rollbackForLoad(): Unit

  /** Loads a version; `load` is what Spark does. */
  protected def loading(version: Long, loadEmpty: Boolean)(load: () => RocksDB): RocksDB

  /**
   * Commits; `commit` is what Spark does, with a snapshot if its argument or Spark requires one. `isAsked` is whether Spark asks
   * for one, which it does with each batch until one is uploaded.
   */
  protected def committing(isAsked: Boolean)(commit: Boolean => Committed): Committed

  /** Called before Spark creates a column family, unless it exists; a snapshot of the version must show it. */
  protected def beforeColumnFamily(name: String): Unit

  /** Called before Spark uploads snapshots in the background. */
  protected def beforeUploads(): Unit

  /** Makes the manager of the store's files. Called by the constructor. */
  protected def managerOfFiles(localTempDir: File): RocksDBFileManager
}

/** Our part in the calls of Spark's manager of a store's snapshots. */
private[store] trait SnapshotHooks extends RocksDBFileManager {
  protected type SnapshotFileMap = Map[String, RocksDBSnapshotFile]

  /** Saves a snapshot; `save` is what Spark does, with these files of the snapshot. */
  protected def saving(checkpointDir: File, version: Long, files: SnapshotFileMap)(save: SnapshotFileMap => Unit): Unit

  /** Deletes old versions; `delete` is what Spark does, for plain files. */
  protected def deletingOld(delete: () => Unit): Unit

  /** Versions of snapshots without checkpoint ids, none above `version`. */
  protected def snapshotsUpTo(version: Long): Seq[Long]

  /** Snapshots with checkpoint ids that are in the lineage, the newest first. */
  protected def snapshotsIn(lineage: Array[LineageItem]): Seq[(Long, String)]
}
