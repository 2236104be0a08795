// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.BuiltFor

/** Behaviour of Spark that differs between its lines. */
object SparkFacts {

  private val line = BuiltFor.Line.split('.').map(_.toInt)

  private def since(major: Int, minor: Int): Boolean = line(0) > major || line(0) == major && line(1) >= minor

  /** State formats of joins. */
  val JoinFormats: Seq[Int] = if (since(4, 2)) 2 to 4 else if (since(4, 1)) 2 to 3 else 1 to 2

  /** The joins that Spark refuses in state format 1. */
  val RefusedInJoinFormat1: Seq[String] = if (since(4, 1)) Seq("inner", "left_outer") else Seq("left_outer")

  /** A pattern of the error for a refused join in state format 1. */
  val RefusalOfJoinFormat1: String =
    if (since(4, 2)) ".*version:? 1.*"
    else "\\[INTERNAL_ERROR\\] The Spark SQL phase planning failed.*|.*version 1 - correctness issue.*"

  /** Whether Spark can be configured to load an older snapshot if the newest cannot be used. */
  val RepairsSnapshots: Boolean = since(4, 2)

  /** Whether `transformWithState` accepts state store providers of any name. */
  val TakesAnyProviderForVariables: Boolean = !since(4, 2)

  /** Files of a store in a batch, checkpoint format 1: the changelog, and in 4.1 the checksum file that is for format 2 alone later. */
  val ChangelogFiles: Int = if (since(4, 1) && !since(4, 2)) 2 else 1

  /** Whether stock Spark uses the local state of a store again, also where a task reads a store before it changes it. */
  val KeepsLocalState: Boolean = since(4, 1)

  /** Checkpoint formats of which Spark's own readers of state know, or in 3.5, which has none, those of the tests. */
  val ReadableFormats: Seq[Int] = if (since(4, 1)) Seq(1, 2) else Seq(1)

  /** The directories that Spark looks for before the query's thread begins. */
  val CheckedOnTheUsersThread: Set[String] = if (since(4, 1)) Set.empty else Set("offsets", "commits")

  /** Whether the driver reads the schemas of stores, or a task of the first partition does. */
  val DriverReadsSchemas: Boolean = since(4, 0)

  /** Whether stores can be unloaded after each batch, which uploads their snapshots first. */
  val UnloadsOnCommit: Boolean = since(4, 1)

  /** Whether Spark asks stores whose snapshots are old to take one with the next commit. */
  val AsksForSnapshots: Boolean = since(4, 2)

  /** Whether a snapshot that is uploaded late gets its own copies of files that it shares with old ones. */
  val ReplacesStaleFiles: Boolean = since(4, 2)

  /** Whether snapshots go to the log, not into Spark's files. */
  val LogsSnapshots: Boolean = since(4, 0)

  /** Whether Spark has a data source for state. */
  val HasStateSource: Boolean = since(4, 0)

  /** Whether a query continues a checkpoint of format 1 with format 2. */
  val AddsCheckpointIds: Boolean = since(4, 3)
}
