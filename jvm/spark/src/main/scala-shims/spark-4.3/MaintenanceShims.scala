// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider

/** How Spark maintains a store: it uploads the snapshots of all stores first, then deletes. */
private[dstl] trait MaintenanceShims extends RocksDBStateStoreProvider {

  /** Whether maintenance does nothing. */
  protected def skipsMaintenance: Boolean

  override def doSnapshotMaintenance(): Unit = if (!skipsMaintenance) super.doSnapshotMaintenance()
  override def doCleanupMaintenance(): Unit = if (!skipsMaintenance) super.doCleanupMaintenance()
}
