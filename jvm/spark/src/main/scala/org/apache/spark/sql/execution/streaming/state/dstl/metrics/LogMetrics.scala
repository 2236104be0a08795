// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import java.util.concurrent.TimeUnit

import scala.collection.mutable

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
 * The log's metrics in a query's progress, in `stateOperators[].customMetrics`. Values are sums over an operator's tasks. One task,
 * that of the first operator's first partition, reports the values of the whole query: those of the newest barrier of which its
 * executor has a report, one or two batches earlier.
 *
 * The provider declares the metrics, and Spark creates them for each operator. Tasks set them in their own copies, so stores need
 * no wrapper. In a task with two stateful operators the first one gets the values. A copy has Spark's label and no key, so labels
 * end with the key.
 */
private[dstl] object LogMetrics {
  private val declared = mutable.Buffer.empty[StateStoreCustomMetric]

  private val SealTime = timing("dstlSealTimeMs", "time to seal")
  private val BlockedTime = timing("dstlBackPressureTimeMs", "time tasks waited because too much was in flight")
  private val ReplayedSegments = sum("dstlReplayedSegments", "segments read for recovery")
  private val ReplayedBytes = size("dstlReplayedBytes", "bytes read for recovery")
  private val ReplayedRecords = sum("dstlReplayedRecords", "change records replayed for recovery")
  private val InlineBytes = size("dstlInlineBytes", "bytes in the newest commit entry")
  private val UploadedBytes = size("dstlUploadedBytes", "bytes of the newest batch in data files")
  private val BarrierWait = timing("dstlBarrierWaitMs", "newest barrier, until everything was durable")
  private val EntryTime = timing("dstlCommitEntryWriteMs", "time to write the newest commit entry")
  private val EntryBytes = size("dstlCommitEntryBytes", "size of the newest commit entry")
  private val Segments = sum("dstlSegments", "segments in the newest commit entry")
  private val LogBytes = size("dstlLogBytes", "bytes of all commit entries and of the changes they name elsewhere")
  private val Snapshots = sum("dstlSnapshots", "snapshots new in the newest commit entry")
  private val SnapshotBytes =
    size("dstlSnapshotBytes", "bytes written for the snapshots new in the newest commit entry")

  val all: Seq[StateStoreCustomMetric] = declared.toVector

  /**
   * Sets the metrics of a task that has sealed. Runs on the task's thread.
   *
   * @param stores directories of the stores that the task has changed
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

  /** Adds what the load of a store has read from the log. Runs on the task's thread. */
  def loaded(task: TaskContext, segments: Long, bytes: Long, records: Long): Unit =
    add(task, Seq(ReplayedSegments -> segments, ReplayedBytes -> bytes, ReplayedRecords -> records))

  /** Whether the store is one of the first partition of the query's first operator. */
  private def isFirst(store: String): Boolean = s"$store/".startsWith("0/0/")

  private def add(task: TaskContext, values: Seq[(StateStoreCustomMetric, Long)]): Unit = {
    val metrics = task.taskMetrics().accumulators().collect { case metric: SQLMetric => metric }
    for ((of, value) <- values if value != 0; found <- metrics.find(_.metadata.name.exists(_.endsWith(mark(of.name)))))
      found.add(value)
  }

  private def sum(key: String, label: String) = declare(StateStoreCustomSumMetric(key, labelled(key, label)))
  private def size(key: String, label: String) = declare(StateStoreCustomSizeMetric(key, labelled(key, label)))
  private def timing(key: String, label: String) = declare(StateStoreCustomTimingMetric(key, labelled(key, label)))

  private def declare(metric: StateStoreCustomMetric): StateStoreCustomMetric = {
    declared += metric
    metric
  }

  private def labelled(key: String, label: String): String = s"log: $label${mark(key)}"
  private def mark(key: String): String = s" [$key]"
}
