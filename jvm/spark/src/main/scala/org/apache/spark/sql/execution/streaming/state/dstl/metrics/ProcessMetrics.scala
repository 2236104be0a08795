// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import com.codahale.metrics.{Gauge, MetricRegistry}

import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources

/**
 * The metrics of all queries of a process as Spark's metrics source `dstl`, for the sinks of `metrics.properties`. Names and
 * units are stable; docs/metrics.md lists them.
 */
private[dstl] final class ProcessMetrics(resources: ProcessResources, driver: Option[DriverSide]) extends Source {
  override val sourceName: String = "dstl"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  private val groups = resources.requestMetrics.all ++ resources.uploadMetrics.all ++
    resources.replayMetrics.all ++ resources.recoveryProgress.all ++ resources.materializations.all ++
    driver.toVector.flatMap(_.metrics.all)
  groups.foreach { case (name, value) => gauge(name)(value()) }
  held()
  driver.foreach(commits)

  private def held(): Unit = {
    gauge("uploads.bytesInFlight")(resources.uploads.inUse)
    gauge("uploads.waiting")(resources.uploads.waiters.toLong)
    gauge("storage.busyThreads")(resources.busyStorageThreads.toLong)
    gauge("storage.interruptedAttempts")(resources.interruptedAttempts)
    gauge("cache.bytes")(resources.entries.weight + resources.ranges.weight)
    gauge("cache.diskBytes")(resources.diskCacheBytes)
    gauge("cache.hits")(resources.entries.hits + resources.ranges.hits)
    gauge("cache.misses")(resources.entries.misses + resources.ranges.misses)
    gauge("recovery.sstCacheBytes")(resources.sstCache.bytes)
    gauge("materializations.bytesInFlight")(resources.snapshotUploads.inUse)
  }

  private def commits(driver: DriverSide): Unit = {
    gauge("commits.inlineBytesHeld")(resources.inlineBudget.inUse)
    gauge("commits.retainedEntries")(driver.runs.all.map(_.retainedEntries.toLong).sum)
    gauge("commits.retainedBytes")(driver.runs.all.map(_.retainedBytes).sum)
    gauge("commits.pinnedEntries")(driver.runs.all.map(_.entriesKeptByPins.toLong).sum)
    gauge("recovery.storesAwaited")(driver.runs.all.map(_.awaitedStores.toLong).sum)
    gauge("commits.runs")(driver.runs.all.size.toLong)
  }

  private def gauge(name: String)(value: => Long): Unit =
    metricRegistry.register(name, new Gauge[Long] { override def getValue: Long = value }): Unit
}
