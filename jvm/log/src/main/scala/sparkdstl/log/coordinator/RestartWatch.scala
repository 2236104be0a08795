package sparkdstl.log.coordinator

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.runtime.{Cancellable, ProtocolRuntime}

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

  // Guarded by this.
  private var left = stores
  private var startedNanos = Option.empty[Long]
  private var next = Option.empty[Cancellable]

  /** A task has come to the store. */
  def asked(storeDirectory: String): Unit = synchronized {
    if (left.nonEmpty) {
      left -= storeDirectory
      if (startedNanos.isEmpty) {
        startedNanos = Some(runtime.timer.nowNanos)
        report()
      }
    }
  }

  /** Stores that no task has come to yet. */
  def awaited: Int = synchronized(left.size)

  /** A batch is committed, or the run has ended: there is nothing left to wait for. */
  def end(): Unit = synchronized {
    left = Set.empty
    next.foreach(_.cancel())
    next = None
  }

  private def report(): Unit =
    try next = Some(runtime.timer.schedule(ReportMillis)(() => reportIfAwaited()))
    catch { case NonFatal(_) => () } // The process ends.

  private def reportIfAwaited(): Unit = {
    val text = synchronized {
      val text = startedNanos.filter(_ => next.nonEmpty).map { nanos =>
        val seconds = TimeUnit.NANOSECONDS.toSeconds(runtime.timer.nowNanos - nanos)
        s"$query is being restarted for $seconds s: tasks have come to ${stores.size - left.size} of ${stores.size} stores"
      }
      if (text.nonEmpty) report()
      text
    }
    text.foreach(logger.info)
  }
}

private object RestartWatch {
  private val logger = LoggerFactory.getLogger(classOf[RestartWatch])
  private val ReportMillis = 10000L
}
