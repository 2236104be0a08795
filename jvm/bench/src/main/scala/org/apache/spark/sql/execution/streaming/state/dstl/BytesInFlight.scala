package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

/** Looks, every few milliseconds, how many bytes the log of a run holds in this process, and keeps the most it saw. */
final class BytesInFlight(run: UUID) extends AutoCloseable {
  @volatile private var most = 0L

  private val watcher = new Thread(() => watch(), s"bytes in flight of $run")
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
        most = math.max(most, RunLogs.find(run).map(_.bytesInFlight).sum)
        Thread.sleep(5)
      }
    catch { case _: InterruptedException => () }
}
