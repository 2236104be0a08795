// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, GroupStates, Inputs, Joins, Operator}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.OutputMode

/** Every stateful operator except transformWithState has the same results as with stock Spark, across a restart. */
class OperatorsSuite extends ComparisonSuite {
  private val update = OutputMode.Update()
  private val complete = OutputMode.Complete()

  private val aggregations = Seq(
    Operator.totals.copy(name = "aggregation, update mode"),
    Operator(
      "aggregation, complete mode",
      _.events.groupBy("key").agg(
        collect_set("value").as("values"),
        approx_count_distinct("value").as("distinct"),
        avg("value").as("average")
      ).withColumn("values", sort_array(col("values"))),
      complete
    ),
    Operator(
      "aggregation without keys, state format version 1",
      _.events.agg(count("key"), max("value")),
      update,
      Map("spark.sql.streaming.aggregation.stateFormatVersion" -> "1")
    ),
    Operator("distinct keys", _.events.select("key").distinct(), update),
    Operator("tumbling window", i => counts(i, window(col("at"), "10 seconds"))),
    Operator("sliding window", i => counts(i, window(col("at"), "20 seconds", "5 seconds")), update),
    Operator("session window", i => counts(i, session_window(col("at"), "10 seconds"))),
    Operator(
      "session window merged before the shuffle",
      i => counts(i, session_window(col("at"), "10 seconds")),
      complete,
      Map("spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition" -> "true")
    ),
    Operator(
      "session window with a gap per key",
      i => counts(i, session_window(col("at"), when(col("key") === "a", "20 seconds").otherwise("5 seconds")))
    )
  )

  private val others = Seq(
    Operator("dropDuplicates", _.events.dropDuplicates("key", "value")),
    Operator("dropDuplicates by event time", _.events.dropDuplicates("key", "at")),
    Operator("dropDuplicatesWithinWatermark", _.events.dropDuplicatesWithinWatermark("key")),
    Operator("streaming limit", _.events.limit(6)),
    Operator("streaming limit after an aggregation", _.events.groupBy("key").count().orderBy("key").limit(3), complete)
  ) ++ Seq("1", "2").flatMap { version =>
    val format = Map("spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion" -> version)
    Seq(
      Operator(
        s"mapGroupsWithState, state format version $version",
        i => GroupStates.map(i.left.toDF()),
        update,
        format
      ),
      Operator(
        s"flatMapGroupsWithState with event time timeout, state format version $version",
        i => GroupStates.flatMap(i.events, 15000),
        configuration = format
      )
    )
  }

  private val chains = Seq(
    Operator(
      "duplicates dropped, then windows counted",
      i =>
        i.events.dropDuplicates("key", "at").groupBy(window(col("at"), "10 seconds")).count()
          .groupBy(window(window_time(col("window")), "30 seconds")).agg(sum("count")),
      state = Seq("0", "1", "2").map(operator => Map("operatorId" -> operator))
    ),
    Operator(
      "a join, then windows counted",
      i => Joins.join("inner")(i).groupBy(window(col("left.at"), "20 seconds")).agg(count("*"), sum("left.value")),
      state = Seq(Map("operatorId" -> "0"), Map("operatorId" -> "1", "joinSide" -> "left")),
      readsBoth = true
    )
  )

  private def windows(name: String, configuration: (String, String)*): Operator =
    Operator(name, i => counts(i, window(col("at"), "10 seconds")), update, configuration.toMap)

  private val formats = Seq(
    windows(
      "row checksums",
      "spark.sql.streaming.stateStore.rowChecksum.enabled" -> "true",
      "spark.sql.streaming.stateStore.rowChecksum.readVerificationRatio" -> "1"
    ),
    windows("no file checksums", "spark.sql.streaming.checkpoint.fileChecksum.enabled" -> "false"),
    windows("offset log format version 2", "spark.sql.streaming.offsetLog.formatVersion" -> "2"),
    windows(
      "a state store with another codec, snapshots at every version",
      "spark.sql.streaming.stateStore.compression.codec" -> "zstd",
      "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1",
      option("materialize.replayCost") -> "100000"
    )
  )

  for {
    (operators, input) <- Seq((aggregations ++ others ++ formats, batches), (chains, longer))
    // The checkpoint's format concerns the commit of a store, which is the same for all operators.
    (operator, index) <- operators.zipWithIndex
    format = 1 + index % 2
    // Spark's provider gives the file manager below it the same files, whatever the operator.
    third = if (isWhole || index < 2) Seq(below) else Nil
  } test(s"${operator.name} is the same with the state in the log, checkpoint format version $format") {
    compare(operator, inFormat(format, Seq(stock, ours) ++ third: _*), input): Unit
  }

  private def counts(inputs: Inputs, window: org.apache.spark.sql.Column): DataFrame =
    inputs.events.groupBy(window, col("key")).agg(count("value"), sum("value"))
}
