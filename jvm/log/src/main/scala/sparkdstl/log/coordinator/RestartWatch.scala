package sparkdstl.log.coordinator

import java.util.concurrent.TimeUnit

import org.slf4j.LoggerFactory

import sparkdstl.log.runtime.{ProtocolRuntime, RepeatedReport}

/**
 * How far a query that was started again has come before its first batch is committed: which of its stores tasks have come
 * to. One that takes long is found in the driver's log, every ten seconds. Thread-safe.
 *
 * @param query
 *   names it in logs
 * @param stores
 *   that the newest commit entry has changed; none if there is no such entry
 */
private[coordinator] final class RestartWatch(query: String, stores: Set[String], runtime: ProtocolRuntime) {
  import RestartWatch._

  private val reports = new RepeatedReport(runtime.timer)(() => logger.info(text))

  // Guarded by this.
  private var left = stores
  private var startedNanos = Option.empty[Long]

  /** A task has come to the store. */
  def asked(storeDirectory: String): Unit = synchronized {
    if (left.nonEmpty) {
      left -= storeDirectory
      if (startedNanos.isEmpty) {
        startedNanos = Some(runtime.timer.nowNanos)
        reports.start()
      }
    }
  }

  /** Stores that no task has come to yet. */
  def awaited: Int = synchronized(left.size)

  /** A batch is committed, or the run has ended: there is nothing left to wait for. */
  def end(): Unit = synchronized {
    left = Set.empty
    reports.end()
  }

  private def text: String = {
    val (there, seconds) = synchronized {
      (stores.size - left.size, TimeUnit.NANOSECONDS.toSeconds(runtime.timer.nowNanos - startedNanos.get))
    }
    s"$query is being restarted for $seconds s: tasks have come to $there of ${stores.size} stores"
  }
}

private object RestartWatch {
  private val logger = LoggerFactory.getLogger(classOf[RestartWatch])
}
