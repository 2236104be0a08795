// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

/** How Spark's database creates column families and is maintained. */
private[store] trait MaintenanceShims extends RocksDBHooks {
  override def createColFamilyIfAbsent(colFamilyName: String, isInternal: Boolean): Short = {
    beforeColumnFamily(colFamilyName)
    super.createColFamilyIfAbsent(colFamilyName, isInternal)
  }

  override def doMaintenance(): Unit = {
    beforeUploads()
    super.doMaintenance()
  }
}
