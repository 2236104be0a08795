// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Operator}
import org.apache.spark.sql.streaming.OutputMode

/** Features that Spark before 4.2 lacks, and behaviour that differs. */
class OlderSparkSuite extends ComparisonSuite {
  override protected def master: String = "local[2,3]"

  override protected def configuration: Map[String, String] =
    Map("spark.plugins" -> classOf[FailingAfterSealPlugin].getName)

  test("Spark has no joins in state format version 4") {
    val error = intercept[Exception] {
      session(ours.and("spark.sql.streaming.join.stateFormatVersion" -> "4"))
    }
    assert(error.getMessage.contains("is invalid. Valid versions are 1"), error)
  }

  test(
    "with stock's name and checkpoint ids a query whose first batch had tasks tried again is refused when it restarts"
  ) {
    // Spark records the changes of both attempts as part of the state, and replays both.
    val operator = Operator("totals", WrongAtFirst.totals, OutputMode.Update())
    val playing = new Playing(operator, inFormat(2, below).head, directory.resolve("lineage/checkpoint"))
    FailingAfterSeal.failed.set(0)
    FailingAfterSeal.failing = true
    try playing.play(batches.take(1))
    finally FailingAfterSeal.failing = false
    assert(FailingAfterSeal.failed.get() > 0)
    val error = failure(playing.play(batches.drop(1)))
    assert(error.contains("DSTL_DAMAGED_LOG") && error.contains("commits/0"), error)
  }
}
