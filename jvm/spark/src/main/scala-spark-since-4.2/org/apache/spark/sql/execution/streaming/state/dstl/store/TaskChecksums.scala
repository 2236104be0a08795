package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state.RocksDBConf

/** Makes Spark's manager of snapshots write and read checksum files on the calling thread, which is the task's. */
private[store] object TaskChecksums {

  /** Whether Spark's manager wraps its files itself, and with how many threads. */
  def isSparksOwn(store: RocksDBConf): Boolean = store.fileChecksumEnabled
  val Threads: Option[Int] = Some(0)

  /** The configuration with which it makes its files. */
  val configuration: (RocksDBConf, Configuration) => Configuration = (_, ofStore) => ofStore
}
