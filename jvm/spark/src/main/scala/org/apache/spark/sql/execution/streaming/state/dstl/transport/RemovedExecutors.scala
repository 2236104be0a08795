// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.concurrent.RejectedExecutionException

import sparkdstl.log.coordinator.CoordinatedRuns
import sparkdstl.log.runtime.Timer

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerExecutorRemoved}

/**
 * Reports an executor that Spark has removed as lost, some time later: Spark may remove an executor that is still uploading its
 * changes before it exits. The RPC layer reports an executor whose connection is closed, but the connection to a host that has
 * failed, or to a process that is stopped, can stay open for longer than a batch may wait.
 */
private[dstl] final class RemovedExecutors(runs: CoordinatedRuns, timer: Timer) extends SparkListener with Logging {
  import RemovedExecutors._

  override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit =
    try timer.schedule(ReportDelayMillis) { () =>
        runs.executorLost(removed.executorId, s"Spark has removed it: ${removed.reason}")
      }: Unit
    catch { case _: RejectedExecutionException => logInfo(s"Executor ${removed.executorId} is removed as Spark ends") }
}

private[dstl] object RemovedExecutors {

  /** How long uploads can delay the exit of an executor. */
  val MaxExitDelayMillis = 10000L

  /** With time for the reports of these uploads. */
  private val ReportDelayMillis = MaxExitDelayMillis + 5000L
}
