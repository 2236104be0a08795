// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
import org.apache.spark.sql.execution.streaming.runtime.MemoryStreamBase
import org.apache.spark.sql.execution.streaming.state.dstl.Event

/** Spark's input for tests of real-time mode, in the same form for all lines. */
object LowLatencyShims {
  def of(session: SparkSession): MemoryStreamBase[Event] =
    new LowLatencyMemoryStream[Event](0, session, 1)(Encoders.product[Event])
}
