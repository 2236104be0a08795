package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state.RocksDBConf

/**
 * How Spark's manager of snapshots is made so that checksum files are written and read on the calling thread: the log knows then
 * which task a changelog belongs to.
 *
 * @param store whether there are any
 */
private[store] final class TaskChecksums(store: RocksDBConf) {

  /** Whether Spark's manager wraps its files itself. */
  def isSparksOwn: Boolean = store.fileChecksumEnabled

  /** How many threads it is to have for that. */
  def threads: Option[Int] = Some(0)

  /** With what it makes its files. */
  def configuration(ofStore: Configuration): Configuration = ofStore
}
