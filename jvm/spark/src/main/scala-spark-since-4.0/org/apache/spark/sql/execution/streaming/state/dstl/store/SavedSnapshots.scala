package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.Map

import org.apache.spark.sql.execution.streaming.state.RocksDBSnapshotFile

/** Who is told when Spark's manager of a store's snapshots is asked to save one, and to delete old ones. */
private[store] trait SavedSnapshots {

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
}
