// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDB

/** Counts the changes of Spark's database. */
private[store] trait ChangeShims extends RocksDB { this: DstlRocksDB =>
  override def put(key: Bytes, value: Bytes, family: String, hasPrefix: Boolean, derive: Boolean): Unit = {
    noteChange()
    super.put(key, value, family, hasPrefix, derive)
  }

  override def merge(key: Bytes, value: Bytes, family: String, hasPrefix: Boolean, derive: Boolean): Unit = {
    noteChange()
    super.merge(key, value, family, hasPrefix, derive)
  }

  override def remove(key: Bytes, family: String, hasPrefix: Boolean, derive: Boolean): Unit = {
    noteChange()
    super.remove(key, family, hasPrefix, derive)
  }
}
