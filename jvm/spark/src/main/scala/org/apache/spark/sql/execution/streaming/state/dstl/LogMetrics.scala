package org.apache.spark.sql.execution.streaming.state.dstl

import scala.util.control.NonFatal

import org.apache.spark.sql.execution.streaming.state.{
  StateStoreCustomMetric,
  StateStoreCustomSizeMetric,
  StateStoreCustomSumMetric,
  StateStoreCustomTimingMetric,
  StateStoreId
}

/**
 * What the log adds to a query's progress, in `stateOperators[].customMetrics`. Values are sums over an operator's stores;
 * what belongs to the whole query is reported by each operator's first store alone and is about the batch before, since
 * the barrier comes after the tasks that report.
 */
private[dstl] object LogMetrics {
  private val InlineBytes = StateStoreCustomSizeMetric("dstlInlineBytes", "log: bytes sealed inline")
  private val UploadedBytes = StateStoreCustomSizeMetric("dstlUploadedBytes", "log: bytes uploaded by executors")
  private val SealTime = StateStoreCustomTimingMetric("dstlSealTimeMs", "log: time to seal")
  private val BlockedTime =
    StateStoreCustomTimingMetric("dstlBackPressureTimeMs", "log: time tasks waited because too much was in flight")
  private val ReplayedSegments = StateStoreCustomSumMetric("dstlReplayedSegments", "log: segments read for recovery")
  private val ReplayedBytes = StateStoreCustomSizeMetric("dstlReplayedBytes", "log: bytes read for recovery")
  private val BarrierWait =
    StateStoreCustomTimingMetric("dstlBarrierWaitMs", "log: barrier of the batch before, until everything was durable")
  private val BatchLogTime =
    StateStoreCustomTimingMetric("dstlBatchLogWriteMs", "log: time to write the batch log of the batch before")
  private val BatchLogBytes =
    StateStoreCustomSizeMetric("dstlBatchLogBytes", "log: size of the batch log of the batch before")
  private val BatchLogSegments =
    StateStoreCustomSumMetric("dstlBatchLogSegments", "log: segments in the batch log of the batch before")

  val all: Seq[StateStoreCustomMetric] = Seq(
    InlineBytes,
    UploadedBytes,
    SealTime,
    BlockedTime,
    ReplayedSegments,
    ReplayedBytes,
    BarrierWait,
    BatchLogTime,
    BatchLogBytes,
    BatchLogSegments
  )

  /** The values of one store since they were last taken. */
  def of(log: RunLog, id: StateStoreId): Map[StateStoreCustomMetric, Long] = {
    val directory =
      if (id.storeName == StateStoreId.DEFAULT_STORE_NAME) s"${id.operatorId}/${id.partitionId}"
      else s"${id.operatorId}/${id.partitionId}/${id.storeName}"
    val activity = log.activity(directory)
    val own = Map[StateStoreCustomMetric, Long](
      InlineBytes -> activity.inlineBytes.getAndSet(0),
      UploadedBytes -> activity.uploadedBytes.getAndSet(0),
      SealTime -> activity.sealNanos.getAndSet(0) / 1000000,
      BlockedTime -> activity.blockedNanos.getAndSet(0) / 1000000,
      ReplayedSegments -> activity.replayedSegments.getAndSet(0),
      ReplayedBytes -> activity.replayedBytes.getAndSet(0)
    )
    if (id.partitionId == 0 && isFirst(id)) own ++ ofQuery(log) else own
  }

  private def isFirst(id: StateStoreId): Boolean =
    id.storeName == StateStoreId.DEFAULT_STORE_NAME || id.storeName.startsWith("left-keyToNumValues")

  private def ofQuery(log: RunLog): Map[StateStoreCustomMetric, Long] =
    try log.lastBarrier().fold(Map.empty[StateStoreCustomMetric, Long]) { report =>
        Map(
          BarrierWait -> report.waitMs,
          BatchLogTime -> report.writeMs,
          BatchLogBytes -> report.bytes,
          BatchLogSegments -> report.segments.toLong
        )
      }
    catch { case NonFatal(_) => Map.empty }
}
