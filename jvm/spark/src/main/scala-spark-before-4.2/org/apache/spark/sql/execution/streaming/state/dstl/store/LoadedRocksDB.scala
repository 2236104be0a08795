package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.sql.execution.streaming.state.{RocksDB, StateStoreCheckpointInfo}

/** How Spark's RocksDB loads and commits versions, in a form that no line of Spark changes. */
private[store] trait LoadedRocksDB extends RocksDB {

  /**
   * Told of each version that is to be loaded.
   *
   * @param load      does it
   * @param loadEmpty whether it is to be empty
   */
  protected def loading(version: Long, loadEmpty: Boolean)(load: () => RocksDB): RocksDB

  /**
   * Told of each commit.
   *
   * @param commit does it, with a snapshot if that is asked for here or by Spark
   */
  protected def committing(commit: Boolean => (Long, StateStoreCheckpointInfo)): (Long, StateStoreCheckpointInfo)

  override def load(version: Long, stateStoreCkptId: Option[String], readOnly: Boolean): RocksDB =
    loading(version, loadEmpty = false) { () =>
      // Spark would take the lineage of what is loaded now for that of the empty store, and replay changes of an attempt at the
      // first batch that does not count.
      if (version == 0 && loadedVersion != 0) rollback()
      super.load(version, stateStoreCkptId, readOnly)
    }

  override def commit(): (Long, StateStoreCheckpointInfo) =
    committing { isSnapshotWanted =>
      if (isSnapshotWanted) LoadedRocksDB.force(this)
      super.commit()
    }
}

private object LoadedRocksDB {

  // What Spark itself sets for a snapshot of the next version; no method leads to it. `reflection.uses` names it.
  private val forced = {
    val field = classOf[RocksDB].getDeclaredField("shouldForceSnapshot")
    field.setAccessible(true)
    field
  }

  private def force(db: RocksDB): Unit = forced.get(db).asInstanceOf[AtomicBoolean].set(true)
}
