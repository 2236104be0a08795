// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.util.SplittableRandom

import sparkdstl.log.runtime.Latency

/**
 * Delays of requests to an object store: log-normal, with a tail of much longer ones.
 *
 * The delay of the n-th request is a function of the seed and n alone. Each contender counts its own requests, and meets the
 * same storage in any order of turns.
 *
 * @param medianMs              of a request without content; 0 for no delays at all
 * @param p99Ms                 its 99th percentile
 * @param tailRatio             share of requests, 0 to 1, with an additional `tailMs`
 * @param bytesPerSecond        of one request's content; 0 for no limit
 * @param networkBytesPerSecond of the content of all requests of a process together; 0 for no limit
 */
final case class RequestDelays(
    medianMs: Double,
    p99Ms: Double,
    tailRatio: Double,
    tailMs: Double,
    bytesPerSecond: Long,
    seed: Long,
    networkBytesPerSecond: Long = 0
) {
  require(tailRatio >= 0 && tailRatio <= 1, s"a share of requests is between 0 and 1, not $tailRatio")

  private val latency = Latency(medianMs, p99Ms)

  /** In milliseconds, of the request with that number. */
  def of(request: Long, bytes: Long): Long = {
    val chance = new SplittableRandom(seed ^ (request * 0x9e3779b97f4a7c15L))
    val answered = latency.millis(chance.nextGaussian())
    val tail = if (chance.nextDouble() < tailRatio) tailMs else 0
    val transfer = if (bytesPerSecond > 0) bytes * 1000.0 / bytesPerSecond else 0
    math.round(answered + tail + transfer)
  }
}
