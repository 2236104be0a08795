package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import java.util.concurrent.TimeUnit

import sparkdstl.log.transport.BarrierReport

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.state.{
  StateStoreCustomMetric,
  StateStoreCustomSizeMetric,
  StateStoreCustomSumMetric,
  StateStoreCustomTimingMetric
}

/**
 * What the log adds to a query's progress, in `stateOperators[].customMetrics`. Values are sums over an operator's tasks;
 * what belongs to the whole query is reported by one task alone, that of the first operator's first partition, and is about the
 * newest barrier that the executor has heard of: that of the batch before, or the one before that. So Spark's UI, which adds up the
 * operators' values, shows it as it is.
 *
 * The provider declares them, so Spark makes them metrics of the operator; they are set in the task's own copy of these. So stores
 * need no wrapper. Where one task has two stateful operators, the values are the first one's.
 */
private[dstl] object LogMetrics {
  private val SealTime = StateStoreCustomTimingMetric("dstlSealTimeMs", "log: time to seal")
  private val BlockedTime =
    StateStoreCustomTimingMetric("dstlBackPressureTimeMs", "log: time tasks waited because too much was in flight")
  private val ReplayedSegments = StateStoreCustomSumMetric("dstlReplayedSegments", "log: segments read for recovery")
  private val ReplayedBytes = StateStoreCustomSizeMetric("dstlReplayedBytes", "log: bytes read for recovery")
  private val ReplayedRecords =
    StateStoreCustomSumMetric("dstlReplayedRecords", "log: change records replayed for recovery")
  private val InlineBytes = StateStoreCustomSizeMetric("dstlInlineBytes", "log: bytes in the newest commit entry")
  private val UploadedBytes =
    StateStoreCustomSizeMetric("dstlUploadedBytes", "log: bytes of the newest batch in data files")
  private val BarrierWait =
    StateStoreCustomTimingMetric("dstlBarrierWaitMs", "log: newest barrier, until everything was durable")
  private val EntryTime =
    StateStoreCustomTimingMetric("dstlCommitEntryWriteMs", "log: time to write the newest commit entry")
  private val EntryBytes = StateStoreCustomSizeMetric("dstlCommitEntryBytes", "log: size of the newest commit entry")
  private val Segments = StateStoreCustomSumMetric("dstlSegments", "log: segments in the newest commit entry")
  private val LogBytes =
    StateStoreCustomSizeMetric(
      "dstlLogBytes",
      "log: bytes of all commit entries and of the changes they name elsewhere"
    )
  private val Snapshots = StateStoreCustomSumMetric("dstlSnapshots", "log: snapshots new in the newest commit entry")
  private val SnapshotBytes =
    StateStoreCustomSizeMetric(
      "dstlSnapshotBytes",
      "log: bytes written for the snapshots new in the newest commit entry"
    )

  val all: Seq[StateStoreCustomMetric] = Seq(
    SealTime,
    BlockedTime,
    ReplayedSegments,
    ReplayedBytes,
    ReplayedRecords,
    InlineBytes,
    UploadedBytes,
    BarrierWait,
    EntryTime,
    EntryBytes,
    Segments,
    LogBytes,
    Snapshots,
    SnapshotBytes
  )

  /**
   * To be called on the task's thread, once the task has sealed.
   *
   * @param stores
   *   directories of the stores that the task has changed
   */
  def report(
      task: TaskContext,
      stores: Seq[String],
      sealNanos: Long,
      blockedNanos: Long,
      barrier: Option[BarrierReport]
  ): Unit = {
    val own = Seq(
      SealTime -> TimeUnit.NANOSECONDS.toMillis(sealNanos),
      BlockedTime -> TimeUnit.NANOSECONDS.toMillis(blockedNanos)
    )
    val ofQuery = barrier.filter(_ => stores.exists(isFirst)).toVector.flatMap { report =>
      Seq(
        InlineBytes -> report.inlineBytes,
        UploadedBytes -> report.uploadedBytes,
        BarrierWait -> report.waitMillis,
        EntryTime -> report.writeMillis,
        EntryBytes -> report.entryBytes,
        Segments -> report.segments.toLong,
        LogBytes -> report.logBytes,
        Snapshots -> report.snapshots.toLong,
        SnapshotBytes -> report.snapshotBytes
      )
    }
    add(task, own ++ ofQuery)
  }

  /** To be called on the task's thread, once it has loaded a store, with what that has read from the log. */
  def loaded(task: TaskContext, segments: Long, bytes: Long, records: Long): Unit =
    add(task, Seq(ReplayedSegments -> segments, ReplayedBytes -> bytes, ReplayedRecords -> records))

  /** Whether the store is one of the first partition of the query's first operator. */
  private def isFirst(store: String): Boolean = s"$store/".startsWith("0/0/")

  private def add(task: TaskContext, values: Seq[(StateStoreCustomMetric, Long)]): Unit = {
    val metrics = task.taskMetrics().accumulators().collect { case metric: SQLMetric => metric }
    values.filter(_._2 != 0).foreach { case (metric, value) =>
      metrics.find(_.metadata.name.contains(metric.desc)).foreach(_.add(value))
    }
  }
}
