// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.{LineageItem, RocksDBFileManager, RocksDBSnapshotFile}

/** How Spark's manager of snapshots finds them, and notes which of their files are uploaded. */
private[store] trait SnapshotShims extends RocksDBFileManager { this: DstlRocksDBFileManager =>

  // Spark tries the newest alone.
  override def getLatestSnapshotVersion(version: Long): Long = snapshotsUpTo(version).maxOption.getOrElse(0L)

  override def getLatestSnapshotVersionAndUniqueIdFromLineage(lineage: Array[LineageItem]): Option[(Long, String)] =
    snapshotsIn(lineage).headOption

  /** The same file, which Spark uploads if it is not uploaded yet. */
  protected def marked(file: RocksDBSnapshotFile, isUploaded: Boolean): RocksDBSnapshotFile =
    file.copy(isUploaded = isUploaded)
}
