// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.metrics

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.LongAdder

/** The metrics of one part of the log; docs/metrics.md lists their names. Thread-safe. */
abstract class MetricGroup(prefix: String) {
  private var gauges = Vector.empty[(String, () => Long)]

  def all: Vector[(String, () => Long)] = gauges
  def apply(name: String): Long = gauges.find(_._1 == s"$prefix.$name").get._2()

  /** This and the following methods are called in the constructor of the group. */
  protected def gauge(name: String)(value: => Long): Unit = gauges :+= s"$prefix.$name" -> (() => value)

  protected def counter(name: String): Counter = {
    val made = new Counter
    gauge(name)(made.value)
    made
  }

  /** A counter of nanoseconds, reported in milliseconds. */
  protected def nanosCounter(name: String): Counter = {
    val made = new Counter
    gauge(name)(TimeUnit.NANOSECONDS.toMillis(made.value))
    made
  }

  /** Percentiles of the last `remembered` latencies in milliseconds: 99 is reported as `<name>P99Ms`, 999 is 99.9 %. */
  protected def latencies(name: String, remembered: Int, percentiles: Int*): LatencyWindow = {
    val window = new LatencyWindow(remembered)
    percentiles.foreach { of =>
      val share = of / math.pow(10, of.toString.length.toDouble)
      gauge(s"${name}P${of}Ms")(TimeUnit.NANOSECONDS.toMillis(window.snapshot().percentileNanos(share)))
    }
    window
  }
}

/** A counter since the start of the process. Thread-safe. */
final class Counter {
  private val adder = new LongAdder

  def apply(): Unit = adder.increment()
  def apply(count: Long): Unit = adder.add(count)
  def value: Long = adder.sum
}
