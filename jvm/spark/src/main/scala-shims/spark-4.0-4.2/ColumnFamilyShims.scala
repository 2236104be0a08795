// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDB

/** How Spark's database creates column families. */
private[store] trait ColumnFamilyShims extends RocksDB { this: DstlRocksDB =>
  override def createColFamilyIfAbsent(colFamilyName: String, isInternal: Boolean): Short = {
    beforeColumnFamily(colFamilyName)
    super.createColFamilyIfAbsent(colFamilyName, isInternal)
  }
}
