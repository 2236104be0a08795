package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import java.util.concurrent.TimeUnit

import com.codahale.metrics.{Gauge, MetricRegistry}

import sparkdstl.log.storage.OperationKind

import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide

/**
 * What this process does for the log, over all its queries, as Spark's metrics source `dstl`: in JMX, Prometheus and wherever
 * else `metrics.properties` sends metrics. Names and units are stable; docs/metrics.md lists them.
 */
private[dstl] final class ProcessMetrics(environment: DstlEnvironment) extends Source {
  import ProcessMetrics._

  override val sourceName: String = "dstl"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  OperationKind.all.foreach(requests)
  uploads()
  held()
  recovery()
  materializations()
  environment.driver.foreach(commits)

  private def requests(operation: OperationKind): Unit = {
    val figure = new Figures(s"requests.${operation.name}", environment.requestMetrics.snapshotOf(operation))
    figure("count")(_.requests)
    figure("attempts")(_.attempts)
    figure("hedges")(_.hedges)
    figure("hedgesWon")(_.hedgesWon)
    figure("retries")(_.retries)
    figure("attemptsFailed")(_.attemptsFailed)
    figure("failures")(_.failures)
    figure("unknown")(_.unknown)
    figure("latencyP50Ms")(f => millis(f.latencyP50Nanos))
    figure("latencyP99Ms")(f => millis(f.latencyP99Nanos))
    figure("latencyP999Ms")(f => millis(f.latencyP999Nanos))
  }

  private def uploads(): Unit = {
    val figure = new Figures("uploads", environment.uploadMetrics.snapshot())
    figure("started")(_.uploadsStarted)
    figure("succeeded")(_.uploadsSucceeded)
    figure("failed")(_.uploadsFailed)
    figure("bytes")(_.uploadedBytes)
    figure("blockedMs")(f => millis(f.blockedNanos))
    figure("discardedObjects")(_.discardedObjects)
    figure("discardFailures")(_.discardFailures)
    figure("discardsGivenUp")(_.discardsGivenUp)
    gauge("uploads.bytesInFlight")(environment.uploads.inUse)
    gauge("uploads.waiting")(environment.uploads.waiters.toLong)
  }

  private def held(): Unit = {
    gauge("storage.busyThreads")(environment.busyStorageThreads.toLong)
    gauge("storage.interruptedAttempts")(environment.interruptedAttempts)
    gauge("cache.bytes")(environment.entries.weight + environment.ranges.weight)
    gauge("cache.diskBytes")(environment.diskCacheBytes)
    gauge("cache.hits")(environment.entries.hits + environment.ranges.hits)
    gauge("cache.misses")(environment.entries.misses + environment.ranges.misses)
  }

  private def recovery(): Unit = {
    gauge("replay.segments")(environment.replayMetrics.segmentCount)
    gauge("replay.bytes")(environment.replayMetrics.byteCount)
    gauge("replay.records")(environment.replayMetrics.recordCount)
    gauge("replay.snapshots")(environment.replayMetrics.loadedSnapshots)
    gauge("replay.unusableSnapshots")(environment.replayMetrics.unusableSnapshots)
    val progress = environment.recoveryProgress
    gauge("recovery.storesLoading")(progress.storesLoading)
    gauge("recovery.storesLoaded")(progress.storesLoaded)
    gauge("recovery.snapshotBytesToDo")(progress.snapshotBytesToDo)
    gauge("recovery.snapshotBytesFetched")(progress.snapshotBytesFetched)
    gauge("recovery.snapshotBytesLocal")(progress.snapshotBytesLocal)
    gauge("recovery.changelogsToDo")(progress.changelogsToDo)
    gauge("recovery.sstCacheBytes")(environment.sstCache.bytes)
  }

  private def materializations(): Unit = {
    val of = environment.materializations
    gauge("materializations.started")(of.startedCount)
    gauge("materializations.completed")(of.completedCount)
    gauge("materializations.uploaded")(of.uploadedCount)
    gauge("materializations.abandoned")(of.abandonedCount)
    gauge("materializations.failed")(of.failedCount)
    gauge("materializations.bytes")(of.uploadedBytes)
    gauge("materializations.bytesInFlight")(environment.snapshotUploads.inUse)
    gauge("materializations.lastBytes")(of.newest._1)
    gauge("materializations.lastMs")(of.newest._2)
  }

  private def commits(driver: DriverSide): Unit = {
    val figure = new Figures("commits", driver.metrics.snapshot())
    figure("count")(_.commits)
    figure("failures")(_.failures)
    figure("refusedSeals")(_.refusedSeals)
    figure("entryBytes")(_.entryBytes)
    figure("inlineBytes")(_.inlineBytes)
    figure("uploadedBytes")(_.uploadedBytes)
    figure("barrierWaitP50Ms")(f => millis(f.waitP50Nanos))
    figure("barrierWaitP99Ms")(f => millis(f.waitP99Nanos))
    figure("entryWriteP50Ms")(f => millis(f.writeP50Nanos))
    figure("entryWriteP99Ms")(f => millis(f.writeP99Nanos))
    figure("failedDeletions")(_.failedDeletions)
    gauge("commits.inlineBytesHeld")(environment.inlineBudget.inUse)
    gauge("commits.retainedEntries")(driver.runs.all.map(_.retainedEntries.toLong).sum)
    gauge("commits.retainedBytes")(driver.runs.all.map(_.retainedBytes).sum)
    gauge("recovery.storesAwaited")(driver.runs.all.map(_.awaitedStores.toLong).sum)
    gauge("commits.runs")(driver.runs.all.size.toLong)
  }

  /** Gauges that show parts of a snapshot, which is taken anew for each of them. */
  private final class Figures[S](prefix: String, snapshot: => S) {
    def apply(name: String)(value: S => Long): Unit = gauge(s"$prefix.$name")(value(snapshot))
  }

  private def gauge(name: String)(value: => Long): Unit =
    metricRegistry.register(name, new Gauge[Long] { override def getValue: Long = value }): Unit
}

private object ProcessMetrics {

  private def millis(nanos: Long): Long = TimeUnit.NANOSECONDS.toMillis(nanos)
}
