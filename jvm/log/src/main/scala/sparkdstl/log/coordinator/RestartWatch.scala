// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.util.concurrent.TimeUnit

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.view.{GuardedState, Restart}
import sparkdstl.log.runtime.{RepeatedReport, Timer}

/** Logs every ten seconds, until the first commit of a restarted query, how many stores its tasks have opened. */
private[coordinator] final class RestartWatch(query: String, state: GuardedState, timer: Timer) {
  private val logger = LoggerFactory.getLogger(classOf[RestartWatch])
  private val reports: RepeatedReport = new RepeatedReport(timer)(() => report())

  /** Records that a task has opened the store. */
  def reached(storeDirectory: String): Unit = {
    val begins = state.modify { of =>
      val restart = of.restart.map(known =>
        known.copy(
          awaited = known.awaited - storeDirectory,
          sinceNanos = known.sinceNanos.orElse(Some(timer.nowNanos))
        )
      )
      (of.copy(restart = restart), of.restart.exists(_.sinceNanos.isEmpty))
    }
    if (begins) reports.start()
  }

  private def report(): Unit = state.get.restart match {
    case Some(Restart(stores, awaited, Some(sinceNanos))) =>
      val seconds = TimeUnit.NANOSECONDS.toSeconds(timer.nowNanos - sinceNanos)
      logger.info(
        s"$query has been restarting for $seconds s: tasks have opened ${stores - awaited.size} of $stores stores"
      )
    case _ => reports.end()
  }
}
