// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.sql.execution.streaming.state.RocksDB

/** How Spark's database loads and commits versions. */
private[store] trait LoadShims extends RocksDB { this: DstlRocksDB =>
  override def load(version: Long, stateStoreCkptId: Option[String], readOnly: Boolean): RocksDB =
    loading(version, stateStoreCkptId, loadEmpty = false) { () =>
      // Without the rollback Spark takes the lineage of the loaded version for that of the empty store, and replays changes of
      // an attempt at the first batch that was not committed.
      if (version == 0 && loadedVersion != 0) rollbackForLoad()
      super.load(version, stateStoreCkptId, readOnly)
    }

  override def commit(): Committed = committing(isAsked = false) { isSnapshotWanted =>
    if (isSnapshotWanted) LoadShims.forced.get(this).asInstanceOf[AtomicBoolean].set(true)
    super.commit()
  }
}

private object LoadShims {

  // Makes Spark take a snapshot at the next commit; Spark has no method that sets it.
  private val forced = FieldUtils.getDeclaredField(classOf[RocksDB], "shouldForceSnapshot", true)
}
