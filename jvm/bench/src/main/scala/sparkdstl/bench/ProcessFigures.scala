// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.lang.management.ManagementFactory

import com.sun.management.OperatingSystemMXBean

/** Processor time and memory of this process. */
object ProcessFigures {
  private val system = ManagementFactory.getPlatformMXBean(classOf[OperatingSystemMXBean])

  /** Of all threads since the start, in milliseconds. */
  def cpuMillis: Double = system.getProcessCpuTime / 1e6

  /** The heap after garbage collections, in bytes. */
  def liveHeap(): Long = {
    val memory = ManagementFactory.getMemoryMXBean
    (1 to 3).map { _ =>
      memory.gc()
      Thread.sleep(50)
      memory.getHeapMemoryUsage.getUsed
    }.min
  }
}

/** Percentiles of times in milliseconds. */
final case class Times(p50: Double, p99: Double, max: Double)

object Times {
  def of(millis: Seq[Double]): Times = {
    val sorted = millis.sorted.toIndexedSeq
    def percentile(percent: Int): Double = sorted(math.ceil(sorted.size * percent / 100.0).toInt - 1)
    if (sorted.isEmpty) Times(0, 0, 0) else Times(percentile(50), percentile(99), sorted.last)
  }
}
