// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.{LineageItem, RocksDBFileManager, RocksDBSnapshotFile}

/** How Spark's manager of snapshots finds them, and notes which of their files are uploaded. */
private[store] trait SnapshotShims extends RocksDBFileManager { this: DstlRocksDBFileManager =>
  override def getEligibleSnapshotsForVersion(version: Long): Seq[Long] = snapshotsUpTo(version)

  override def getSnapshotVersionsAndUniqueIdsFromLineage(lineage: Array[LineageItem]): Seq[(Long, String)] =
    snapshotsIn(lineage)

  /** The same file, which Spark uploads if it is not uploaded yet. */
  protected def marked(file: RocksDBSnapshotFile, isUploaded: Boolean): RocksDBSnapshotFile =
    file.copy(reusedFromVersion = Option.when(isUploaded)(0L))
}
