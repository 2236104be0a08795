package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDB

/** How records of a changelog come to Spark's RocksDB, in a form that no line of Spark changes. */
private[store] trait ChangedRocksDB extends RocksDB {

  /** Told of each change, of a task or of a changelog that is replayed. */
  protected def changing(): Unit

  override def put(key: Array[Byte], value: Array[Byte], cfName: String, includesPrefix: Boolean): Unit = {
    changing()
    super.put(key, value, cfName, includesPrefix)
  }

  override def merge(key: Array[Byte], value: Array[Byte], cfName: String, includesPrefix: Boolean): Unit = {
    changing()
    super.merge(key, value, cfName, includesPrefix)
  }

  override def remove(key: Array[Byte], cfName: String, includesPrefix: Boolean): Unit = {
    changing()
    super.remove(key, cfName, includesPrefix)
  }
}
