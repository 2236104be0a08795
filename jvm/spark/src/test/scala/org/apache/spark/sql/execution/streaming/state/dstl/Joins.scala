// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/** Stream-stream joins of the two inputs. */
object Joins {
  val kinds: Seq[String] = Seq("inner", "left_outer", "right_outer", "full_outer", "left_semi")

  /** Formats 1 and 2 have four stores a partition, 3 and 4 one store with column families; 4 scans and deletes ranges. */
  def format(version: Int): Map[String, String] = Map(
    "spark.sql.streaming.join.stateFormatVersion" -> version.toString,
    "spark.sql.streaming.join.stateFormatV4.enabled" -> (version == 4).toString
  )

  /** Events of one key that are at most fifteen seconds apart. */
  def join(kind: String)(inputs: Inputs): DataFrame = {
    val left = inputs.left.toDF().withWatermark("at", "10 seconds").as("left")
    val right = inputs.right.toDF().withWatermark("at", "10 seconds").as("right")
    left.join(
      right,
      expr(
        "left.key = right.key AND right.at >= left.at - interval 15 seconds AND right.at <= left.at + interval 15 seconds"
      ),
      kind
    )
  }

  /** The state of both sides, as the state data source returns it. */
  val state: Seq[Map[String, String]] = Seq("left", "right").map(side => Map("joinSide" -> side))
}
