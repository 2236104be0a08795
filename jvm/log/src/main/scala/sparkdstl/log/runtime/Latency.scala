// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

/** The log-normal distribution of the latencies of a storage, by its median and its 99th percentile, in milliseconds. */
final case class Latency(median: Double, p99: Double) {
  require(median >= 0 && (median == 0 || p99 >= median), s"median $median ms, 99th percentile $p99 ms")

  private val deviation = if (median == 0) 0 else math.log(p99 / median) / Latency.NormalP99

  /** The latency for a value of the standard normal distribution. */
  def millis(gaussian: Double): Double = median * math.exp(deviation * gaussian)
}

object Latency {

  /** The 99th percentile of the standard normal distribution. */
  private val NormalP99 = 2.3263

  /** The ratio of the two is that of the benchmark. */
  def ofObjectStore(median: Double): Latency = Latency(median, 6 * median)

  /** A value of the standard normal distribution, by the method of Box and Muller. */
  def gaussian(random: RandomSource): Double =
    math.sqrt(-2 * math.log(1 - random.nextDouble())) * math.cos(2 * math.Pi * random.nextDouble())
}
