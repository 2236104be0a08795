// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider

/** How Spark maintains a store. */
private[dstl] trait MaintenanceShims extends RocksDBStateStoreProvider {

  /** Whether maintenance does nothing. */
  protected def skipsMaintenance: Boolean

  override def doMaintenance(): Unit = if (!skipsMaintenance) super.doMaintenance()
}
