// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import sparkdstl.log.config.LogOptions

/**
 * Samples, every few milliseconds, the bytes of state changes that the log holds in this process, for data files and for
 * commit entries, and keeps the maximum.
 */
final class BytesInFlight extends AutoCloseable {
  @volatile private var most = 0L

  private val watcher = new Thread(() => watch(), "bytes in flight")
  watcher.setDaemon(true)
  watcher.start()

  def peak: Long = most

  override def close(): Unit = {
    watcher.interrupt()
    watcher.join()
  }

  private def watch(): Unit =
    try
      while (true) {
        val environment = DstlEnvironment.get.resources
        most = math.max(most, environment.uploadBudget(LogOptions.default).inUse + environment.inlineBudget.inUse)
        Thread.sleep(5)
      }
    catch { case _: InterruptedException => () }
}
