// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.execution.streaming.state.StateStoreProvider

/** The maintenance of a store, as Spark's threads do it. */
object StoreMaintenance {
  def run(store: StateStoreProvider): Unit = {
    store.doSnapshotMaintenance()
    store.doCleanupMaintenance()
  }
}
