// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import scala.concurrent.ExecutionContext

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.sql.execution.streaming.checkpointing.ChecksumCheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.RocksDBFileManager
import org.apache.spark.util.ThreadUtils

/** Makes Spark's manager of snapshots write and read checksum files on the calling thread, which is the task's. */
private[store] object TaskChecksumShims {

  /** The smallest number that this Spark accepts. The threads never start. */
  val Threads = 2

  private val files = {
    val method = classOf[RocksDBFileManager].getDeclaredMethod("fm")
    method.setAccessible(true)
    method
  }
  private val pool = FieldUtils.getDeclaredField(classOf[ChecksumCheckpointFileManager], "threadPool", true)

  def onCallingThread(manager: RocksDBFileManager): Unit = files.invoke(manager) match {
    case checksummed: ChecksumCheckpointFileManager =>
      pool.set(checksummed, ExecutionContext.fromExecutorService(ThreadUtils.sameThreadExecutorService()))
    case _ =>
  }
}
