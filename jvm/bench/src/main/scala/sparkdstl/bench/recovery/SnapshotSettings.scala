// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.recovery

import sparkdstl.log.config.LogOptions

/** Settings of snapshots, in Spark's own files and in the log. */
private object SnapshotSettings {
  val MinDeltas = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
  val MaintenanceInterval = "spark.sql.streaming.stateStore.maintenanceInterval"
  val ReplayCost: String = LogOptions.Prefix + LogOptions.MaterializeReplayCost.key
  private val Interval = LogOptions.Prefix + LogOptions.MaterializeInterval.key

  val Defaults: Seq[(String, String)] = Seq(
    MinDeltas -> "10",
    MaintenanceInterval -> "60s",
    Interval -> s"${LogOptions.default.materializeIntervalMs}ms",
    ReplayCost -> LogOptions.default.materializeReplayCost.toString
  )

  /** No snapshots while a benchmark runs. */
  val Never: Seq[(String, String)] =
    Seq(MinDeltas -> Int.MaxValue.toString, MaintenanceInterval -> "1h", Interval -> "24h", ReplayCost -> "0")
}
