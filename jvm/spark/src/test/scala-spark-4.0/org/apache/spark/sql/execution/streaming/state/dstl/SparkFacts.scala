package org.apache.spark.sql.execution.streaming.state.dstl

/** What tests expect of Spark itself, where its lines differ. */
object SparkFacts {

  /** State formats of joins. */
  val JoinFormats: Seq[Int] = 1 to 2

  /** Which joins in state format 1 are refused. */
  val RefusedInJoinFormat1: Seq[String] = Seq("left_outer")

  /** As what a join in state format 1 is refused. */
  val RefusalOfJoinFormat1: String =
    "\\[INTERNAL_ERROR\\] The Spark SQL phase planning failed.*|.*version 1 - correctness issue.*"

  /** Whether it loads an older snapshot where the newest cannot be used, if it is configured so. */
  val RepairsSnapshots: Boolean = false

  /** Whether `transformWithState` takes state store providers of any name. */
  val TakesAnyProviderForVariables: Boolean = true

  /** Files of a store in a batch, checkpoint format 1: the changelog. */
  val ChangelogFiles: Int = 1

  /** Whether stock Spark uses the local state of a store again, also where a task reads a store before it changes it. */
  val KeepsLocalState: Boolean = false

  /** Checkpoint formats of which Spark's own readers of state know. */
  val ReadableFormats: Seq[Int] = Seq(1)

  /** Whether stores can be unloaded after each batch, which uploads their snapshots first. */
  val UnloadsOnCommit: Boolean = false

  /** Whether snapshots go to the log, rather than into files of Spark's. */
  val LogsSnapshots: Boolean = true

  /** Whether it has a data source for states. */
  val HasStateSource: Boolean = true
}
