package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import com.codahale.metrics.{Gauge, MetricRegistry}

import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide

/**
 * What this process does for the log, over all its queries, as Spark's metrics source `dstl`: in JMX, Prometheus and wherever
 * else `metrics.properties` sends metrics. Names and units are stable; docs/metrics.md lists them.
 */
private[dstl] final class ProcessMetrics(environment: DstlEnvironment) extends Source {
  override val sourceName: String = "dstl"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  private val groups = environment.requestMetrics.all ++ environment.uploadMetrics.all ++
    environment.replayMetrics.all ++ environment.materializations.all ++
    environment.driver.toVector.flatMap(_.metrics.all)
  groups.foreach { case (name, value) => gauge(name)(value()) }
  held()
  recovery()
  environment.driver.foreach(commits)

  private def held(): Unit = {
    gauge("uploads.bytesInFlight")(environment.uploads.inUse)
    gauge("uploads.waiting")(environment.uploads.waiters.toLong)
    gauge("storage.busyThreads")(environment.busyStorageThreads.toLong)
    gauge("storage.interruptedAttempts")(environment.interruptedAttempts)
    gauge("cache.bytes")(environment.entries.weight + environment.ranges.weight)
    gauge("cache.diskBytes")(environment.diskCacheBytes)
    gauge("cache.hits")(environment.entries.hits + environment.ranges.hits)
    gauge("cache.misses")(environment.entries.misses + environment.ranges.misses)
    gauge("materializations.bytesInFlight")(environment.snapshotUploads.inUse)
  }

  private def recovery(): Unit = {
    val progress = environment.recoveryProgress
    gauge("recovery.storesLoading")(progress.storesLoading)
    gauge("recovery.storesLoaded")(progress.storesLoaded)
    gauge("recovery.snapshotBytesToDo")(progress.snapshotBytesToDo)
    gauge("recovery.snapshotBytesFetched")(progress.snapshotBytesFetched)
    gauge("recovery.snapshotBytesLocal")(progress.snapshotBytesLocal)
    gauge("recovery.changelogsToDo")(progress.changelogsToDo)
    gauge("recovery.sstCacheBytes")(environment.sstCache.bytes)
  }

  private def commits(driver: DriverSide): Unit = {
    gauge("commits.inlineBytesHeld")(environment.inlineBudget.inUse)
    gauge("commits.retainedEntries")(driver.runs.all.map(_.retainedEntries.toLong).sum)
    gauge("commits.retainedBytes")(driver.runs.all.map(_.retainedBytes).sum)
    gauge("recovery.storesAwaited")(driver.runs.all.map(_.awaitedStores.toLong).sum)
    gauge("commits.runs")(driver.runs.all.size.toLong)
  }

  private def gauge(name: String)(value: => Long): Unit =
    metricRegistry.register(name, new Gauge[Long] { override def getValue: Long = value }): Unit
}
