package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.{ConcurrentHashMap, Executor, ThreadLocalRandom}

import sparkdstl.log.config.{LogOptions, RetryPolicyName}
import sparkdstl.log.retry.{RetryPolicy, RetryingExecutor, UploadMetrics}
import sparkdstl.log.runtime.{ScheduledTimer, Timer}
import sparkdstl.log.storage.{LogStorage, StorageErrors}
import sparkdstl.log.upload.ObjectDiscarder

import org.apache.spark.util.ThreadUtils

/**
 * Threads and what runs on them, shared by all queries of a process that have the same options. Never closed: their threads
 * are daemons, and a process has few sets of options.
 */
private[dstl] final class Services(options: LogOptions) {
  val timer: Timer = new ScheduledTimer(ThreadUtils.namedThreadFactory("dstl-timer"))

  val uploadMetrics = new UploadMetrics
  val writeMetrics = new UploadMetrics
  // Apart from writes, which take longer: what is slow for a question is not slow for a write.
  val readMetrics = new UploadMetrics

  val writes = new RetriedWrites(requests("dstl-write", writeMetrics))
  val reads = new RetriedReads(requests("dstl-read", readMetrics))

  val background: Executor = ThreadUtils.newDaemonFixedThreadPool(options.discardThreads, "dstl-discard")

  /** Deletes from `storage` what nobody needs. */
  def newDiscarder(storage: LogStorage): ObjectDiscarder = new ObjectDiscarder(storage, background, uploadMetrics)

  val downloads: Executor = ThreadUtils.newDaemonFixedThreadPool(options.downloadThreads, "dstl-download")

  /** For the uploads of one run: what one run's uploads are stuck in must not hold up another's. */
  def newUploadRetries(): RetryingExecutor = retries("dstl-upload", options.uploadThreads, uploadMetrics)

  private def requests(threadName: String, metrics: UploadMetrics): RetriedRequests =
    new RetriedRequests(retries(threadName, Services.ConcurrentRequests, metrics), options.commitTimeoutMs)

  private def retries(threadName: String, numThreads: Int, metrics: UploadMetrics): RetryingExecutor =
    new RetryingExecutor(
      policy,
      numThreads,
      timer,
      ThreadUtils.newDaemonCachedThreadPool(threadName),
      StorageErrors.isRetryable,
      () => ThreadLocalRandom.current().nextDouble(),
      metrics
    )

  private def policy: RetryPolicy = options.retryPolicy match {
    case RetryPolicyName.NoRetry => RetryPolicy.NoRetries
    case RetryPolicyName.Fixed =>
      RetryPolicy.Fixed(options.uploadMaxAttempts, options.uploadTimeoutMs, options.nextAttemptDelayMs)
    case RetryPolicyName.Hedged =>
      RetryPolicy.Hedged(options.uploadMaxAttempts, options.uploadTimeoutMs, options.nextAttemptDelayMs)
  }
}

private[dstl] object Services {

  /** Every single request has a caller that waits for it, so callers bound their number; this is only a backstop. */
  private val ConcurrentRequests = 64

  private val all = new ConcurrentHashMap[LogOptions, Services]

  def of(options: LogOptions): Services = all.computeIfAbsent(options, new Services(_))
}
