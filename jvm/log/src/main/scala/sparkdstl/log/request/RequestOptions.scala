// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import sparkdstl.log.config.{LogOptions, RetryPolicy}
import sparkdstl.log.metrics.Latencies
import sparkdstl.log.runtime.Latency

/**
 * The policy of hedges and retries. `none`: one attempt. `fixed`: another attempt `timeoutMillis` after the newest. `hedged`:
 * another when the newest is slower than recent ones, at the latest after `timeoutMillis`. Both also retry after errors, with a
 * delay of `nextAttemptDelayMillis` that doubles with each further error. At most `maxAttempts` attempts of a request that are
 * not aborted run at the same time. `slowness` delays each attempt, for trials.
 */
final case class RequestOptions(
    policy: RetryPolicy,
    timeoutMillis: Long,
    maxAttempts: Int,
    nextAttemptDelayMillis: Long,
    slowness: Option[Latency] = None
) {
  require(maxAttempts > 0, s"at least one attempt is needed, not $maxAttempts")

  def retries: Boolean = policy != RetryPolicy.NoRetry

  /**
   * The delay after which a slow attempt is hedged; None without hedges.
   *
   * `hedged` uses the 95th percentile of the latencies of recent attempts of the kind, but at least
   * [[RequestOptions.FloorMillis]] and twice the median, because the percentile of almost equal latencies is noise. It is
   * `timeoutMillis` until [[RequestOptions.MinSamples]] attempts were observed, and never more.
   */
  def hedgeMillis(observed: Latencies): Option[Long] = policy match {
    case RetryPolicy.NoRetry => None
    case RetryPolicy.Fixed => Some(timeoutMillis)
    case RetryPolicy.Hedged if observed.count < RequestOptions.MinSamples => Some(timeoutMillis)
    case RetryPolicy.Hedged =>
      val slowNanos = math.max(observed.percentileNanos(0.95), 2 * observed.percentileNanos(0.5))
      Some(math.min(timeoutMillis, math.max(RequestOptions.FloorMillis, slowNanos / 1000000)))
  }

  /**
   * The delay after which attempt `number` that replaces another begins, if `maxAttempts` are under way: a connection may be
   * dead without an error. The delay doubles with each replacement, so that the load of a slow storage does not grow; the
   * maximum is ten seconds, `timeoutMillis`, or the time that the bytes take on a slow line.
   */
  def replacementMillis(kind: RequestKind, number: Int): Long = {
    val longest = Seq(RequestOptions.MaxDelayMillis, timeoutMillis, kind.transferMillis).max
    math.min(longest, timeoutMillis << math.min(number, 20))
  }

  /** The delay of the retry after error number `errors`, times 0.5 to 1.5 by `chance`, which is uniform in 0 to 1. */
  def retryDelayMillis(errors: Int, chance: Double): Long = {
    val first = math.max(nextAttemptDelayMillis, 1L)
    val longest = math.max(RequestOptions.MaxDelayMillis, first)
    val doubled = first << math.min(errors - 1, 20)
    math.round(math.min(doubled, longest) * (0.5 + chance))
  }
}

object RequestOptions {
  val MinSamples = 20
  val FloorMillis = 10L
  val MaxDelayMillis = 10000L

  /** How long a request at the start of a query is tried again after errors that need an operator. */
  val StartMillis = 3000L

  def of(options: LogOptions): RequestOptions =
    RequestOptions(
      options.retryPolicy,
      options.uploadTimeoutMs,
      options.uploadMaxAttempts,
      options.nextAttemptDelayMs,
      Option.when(options.simulatedSlownessMs > 0)(Latency.ofObjectStore(options.simulatedSlownessMs.toDouble))
    )
}
