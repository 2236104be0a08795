// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDBFileManager

/** Makes Spark's manager of snapshots write and read checksum files on the calling thread, which is the task's. */
private[store] object TaskChecksumShims {
  val Threads = 0

  def onCallingThread(manager: RocksDBFileManager): Unit = ()
}
