package org.apache.spark.sql.execution.streaming.state.dstl

/** What tests expect of Spark itself, where its lines differ. */
object SparkFacts {

  /** State formats of joins. */
  val JoinFormats: Seq[Int] = 2 to 4

  /** Which joins in state format 1 are refused. */
  val RefusedInJoinFormat1: Seq[String] = Seq("inner", "left_outer")

  /** As what a join in state format 1 is refused. */
  val RefusalOfJoinFormat1: String = ".*version:? 1.*"

  /** Whether it loads an older snapshot where the newest cannot be used, if it is configured so. */
  val RepairsSnapshots: Boolean = true

  /** Whether `transformWithState` takes state store providers of any name. */
  val TakesAnyProviderForVariables: Boolean = false

  /** Files of a store in a batch, checkpoint format 1: the changelog. */
  val ChangelogFiles: Int = 1

  /** Whether stock Spark uses the local state of a store again, also where a task reads a store before it changes it. */
  val KeepsLocalState: Boolean = true

  /** Checkpoint formats of which Spark's own readers of state know. */
  val ReadableFormats: Seq[Int] = Seq(1, 2)

  /** Whether stores can be unloaded after each batch, which uploads their snapshots first. */
  val UnloadsOnCommit: Boolean = true

  /** Whether snapshots go to the log, rather than into files of Spark's. */
  val LogsSnapshots: Boolean = true

  /** Whether it has a data source for states. */
  val HasStateSource: Boolean = true
}
