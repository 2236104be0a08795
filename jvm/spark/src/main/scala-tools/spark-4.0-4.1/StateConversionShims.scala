// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.{Map => JavaMap}

/** Refuses to convert checkpoints: that needs a writer of Spark 4.2. */
private[sql] final class StateConversion(
    val root: String,
    val target: String,
    val settings: JavaMap[String, String],
    val before: StateBatch,
    val after: StateBatch
) {
  def convert(operator: Int, store: String, partition: Int, isThere: Boolean): ConvertedStore = new ConvertedStore(
    0,
    isSame = false,
    s"Spark ${org.apache.spark.SPARK_VERSION} cannot write a state at a version of choice, Spark 4.2 and later can: store " +
      s"'$store' of operator $operator, partition $partition, is ${if (isThere) "not compared" else "not written"}"
  )
}
