package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.{LineageItem, RocksDBFileManager, RocksDBSnapshotFile}

/** How Spark's RocksDB asks which snapshots there are, in a form that no line of Spark changes. */
private[store] trait FoundSnapshots extends RocksDBFileManager {

  /** Versions of snapshots without ids, none of them above `version`. */
  protected def snapshotsUpTo(version: Long): Seq[Long]

  /** Snapshots with ids that are in the lineage, the newest first. */
  protected def snapshotsIn(lineage: Array[LineageItem]): Seq[(Long, String)]

  override def getEligibleSnapshotsForVersion(version: Long): Seq[Long] = snapshotsUpTo(version)

  override def getSnapshotVersionsAndUniqueIdsFromLineage(lineage: Array[LineageItem]): Seq[(Long, String)] =
    snapshotsIn(lineage)

  /** The same file, which Spark uploads if it is not uploaded yet. */
  protected def marked(file: RocksDBSnapshotFile, isUploaded: Boolean): RocksDBSnapshotFile =
    file.copy(reusedFromVersion = Option.when(isUploaded)(0L))
}
