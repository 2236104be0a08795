package sparkdstl.log.retry

/** When a task is tried again. Durations are in milliseconds. */
sealed trait RetryPolicy {

  /** How many attempts there may be in all, the first included. */
  def maxAttempts: Int

  /** How long to wait after an error before the next attempt, before jitter. */
  def nextAttemptDelayMillis: Long

  /**
   * How long the newest attempt may be silent before another is started beside it; None for as long as it likes.
   *
   * @param observed
   *   latencies of recent successful attempts
   */
  def silenceMillis(observed: Latencies): Option[Long]
}

object RetryPolicy {

  /** One attempt, however long it takes. */
  case object NoRetries extends RetryPolicy {
    override val maxAttempts = 1
    override val nextAttemptDelayMillis = 0L

    override def silenceMillis(observed: Latencies): Option[Long] = None
  }

  /** Another attempt after each error, and after each `timeoutMillis` of silence. */
  final case class Fixed(maxAttempts: Int, timeoutMillis: Long, nextAttemptDelayMillis: Long) extends RetryPolicy {
    require(maxAttempts > 0, s"at least one attempt is needed, not $maxAttempts")

    override def silenceMillis(observed: Latencies): Option[Long] = Some(timeoutMillis)
  }

  /**
   * Another attempt after each error, and as soon as the newest is slower than 19 of 20 recent ones were, at the
   * latest after `timeoutMillis`.
   *
   * Nothing is known from fewer than [[Hedged.MinSamples]] attempts: then it is `timeoutMillis`. Where all are about
   * equally fast, the 95th percentile is noise, so an attempt is given [[Hedged.FloorMillis]], and twice the median.
   */
  final case class Hedged(maxAttempts: Int, timeoutMillis: Long, nextAttemptDelayMillis: Long) extends RetryPolicy {
    require(maxAttempts > 0, s"at least one attempt is needed, not $maxAttempts")

    override def silenceMillis(observed: Latencies): Option[Long] =
      if (observed.count < Hedged.MinSamples) Some(timeoutMillis)
      else {
        val slowNanos = math.max(observed.percentileNanos(0.95), 2 * observed.percentileNanos(0.5))
        Some(math.min(timeoutMillis, math.max(Hedged.FloorMillis, slowNanos / 1000000)))
      }
  }

  object Hedged {
    val MinSamples = 20
    val FloorMillis = 10L
  }
}
