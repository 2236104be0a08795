// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDB

/** How Spark's database loads and commits versions. */
private[store] trait LoadShims extends RocksDB { this: DstlRocksDB =>
  override def load(version: Long, stateStoreCkptId: Option[String], readOnly: Boolean, loadEmpty: Boolean): RocksDB =
    loading(version, stateStoreCkptId, loadEmpty)(() => super.load(version, stateStoreCkptId, readOnly, loadEmpty))

  override def commit(forceSnapshot: Boolean): Committed = committing(forceSnapshot)(super.commit)
}

/** Counts the changes of Spark's database. */
private[store] trait ChangeShims extends RocksDB { this: DstlRocksDB =>
  override def put(key: Bytes, value: Bytes, family: String, prefix: Boolean, derive: Boolean, sum: Boolean): Unit = {
    noteChange()
    super.put(key, value, family, prefix, derive, sum)
  }

  override def merge(key: Bytes, value: Bytes, family: String, prefix: Boolean, derive: Boolean, sum: Boolean): Unit = {
    noteChange()
    super.merge(key, value, family, prefix, derive, sum)
  }

  override def remove(key: Bytes, family: String, prefix: Boolean, derive: Boolean, sum: Boolean): Unit = {
    noteChange()
    super.remove(key, family, prefix, derive, sum)
  }

  override def deleteRange(begin: Bytes, end: Bytes, family: String, prefix: Boolean, sum: Boolean): Unit = {
    noteChange()
    super.deleteRange(begin, end, family, prefix, sum)
  }
}
