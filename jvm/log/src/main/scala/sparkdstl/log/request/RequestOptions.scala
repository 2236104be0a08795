package sparkdstl.log.request

import sparkdstl.log.config.{LogOptions, RetryPolicy}
import sparkdstl.log.metrics.Latencies

/**
 * When a request is tried again.
 *
 * @param policy `none`: one attempt, however long it takes. `fixed`: another beside the newest after `timeoutMillis`.
 *   `hedged`: another as soon as the newest is slower than recent ones were. After an error there is another attempt with
 *   the latter two
 * @param timeoutMillis how long an attempt may take, in milliseconds, before another always begins beside it
 * @param maxAttempts how many attempts of a request are waited for at once
 * @param nextAttemptDelayMillis from an error to the next attempt, in milliseconds; doubles with each further error
 */
final case class RequestOptions(
    policy: RetryPolicy,
    timeoutMillis: Long,
    maxAttempts: Int,
    nextAttemptDelayMillis: Long
) {
  require(maxAttempts > 0, s"at least one attempt is needed, not $maxAttempts")

  /** Whether an error leads to another attempt. */
  def retries: Boolean = policy != RetryPolicy.NoRetry

  /**
   * How long the newest attempt may take before another begins beside it; None without limit.
   *
   * It is `timeoutMillis` until [[RequestOptions.MinSamples]] attempts were observed. Where all are
   * about equally fast, the 95th percentile is noise, so an attempt is given [[RequestOptions.FloorMillis]], and twice
   * the median.
   *
   * @param observed latencies of recent attempts of the same kind
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
   * How long the newest attempt may take, where no more attempts may be under way, before the oldest is aborted and
   * another begins: a connection may be dead without an error. Doubles with each, so that a storage that is merely slow is
   * not asked ever more; to ten seconds, or to the time that the bytes take on a slow line.
   *
   * @param number of the attempt that is replaced, from 1 on
   */
  def replacementMillis(kind: RequestKind, number: Int): Long = {
    val longest = Seq(RequestOptions.MaxDelayMillis, timeoutMillis, kind.transferMillis).max
    math.min(longest, timeoutMillis << math.min(number, 20))
  }

  /**
   * How long to wait after the `errors`th error of a request, in milliseconds.
   *
   * @param chance uniform in 0 to 1: spreads the delay over 0.5 to 1.5 times its length
   */
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

  def of(options: LogOptions): RequestOptions =
    RequestOptions(
      options.retryPolicy,
      options.uploadTimeoutMs,
      options.uploadMaxAttempts,
      options.nextAttemptDelayMs
    )
}
