// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.io.File

import sparkdstl.bench.driver.DriverBench
import sparkdstl.bench.growth.GrowthBench
import sparkdstl.bench.recovery.RecoveryBench

/** A process of the benchmark: `BenchMain <specification.json>`. Prints `done <n>` after each of its steps. */
object BenchMain {

  def main(arguments: Array[String]): Unit = {
    val file = new File(arguments.head)
    Json.read[BenchmarkName](file).benchmark match {
      case "compare" => CellBench.run(Json.read[CellSpec](file))
      case "driver" => DriverBench.run(Json.read[DriverSpec](file))
      case "growth" => GrowthBench.run(Json.read[GrowthSpec](file))
      case "recovery" => RecoveryBench.run(Json.read[RecoverySpec](file), file)
      case other => throw new IllegalArgumentException(s"no benchmark is named $other")
    }
  }

  def done(steps: Int): Unit = println(s"done $steps")
}

private final case class BenchmarkName(benchmark: String)
