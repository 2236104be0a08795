// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.atomic.AtomicBoolean

import sparkdstl.log.error.Causes

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide
import org.apache.spark.sql.execution.streaming.state.dstl.metrics.ProcessMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkerSide

/**
 * The log in one Spark environment: the resources of the process, and its sides as a driver and as an executor. Created with
 * the first use, and closed with the Spark environment.
 *
 * @param env the Spark environment; null in a process that has none
 */
private[dstl] final class DstlEnvironment private (env: SparkEnv) extends AutoCloseable {
  private val isClosed = new AtomicBoolean

  val resources = new ProcessResources(env)

  /** The driver's side; executors have none. */
  val driver: Option[DriverSide] =
    Option.when(env != null && env.executorId == SparkContext.DRIVER_IDENTIFIER)(
      new DriverSide(env, resources, () => close())
    )

  /** The executors' side; a driver in local mode has both. */
  val workers = new WorkerSide(env, resources, isExecutor = env != null && driver.isEmpty)

  private val metrics = Option.when(env != null)(new ProcessMetrics(resources, driver))
  metrics.foreach(env.metricsSystem.registerSource)
  driver.foreach(_.open())

  /**
   * Ends all waits first, so that their errors name the end of Spark as the cause. Then the runs end, whose last requests need
   * the resources.
   */
  override def close(): Unit = if (isClosed.compareAndSet(false, true)) {
    val reported: AutoCloseable = () => metrics.foreach(env.metricsSystem.removeSource)
    Causes.closingAll(Iterator(resources.waiting) ++ driver ++ Iterator(reported, workers, resources))(_.close())
  }
}

private[dstl] object DstlEnvironment {

  // Guarded by this.
  private var current: DstlEnvironment = _
  private var of: SparkEnv = _

  /**
   * The log in this process's Spark environment. Only entry points call this, those that Spark creates and `StateFollower`,
   * and pass on what they get. The log of an earlier Spark environment is closed.
   */
  def get: DstlEnvironment = synchronized {
    val env = SparkEnv.get
    if (current == null || (of ne env)) {
      if (current != null) current.close()
      current = new DstlEnvironment(env)
      of = env
    }
    current
  }
}
