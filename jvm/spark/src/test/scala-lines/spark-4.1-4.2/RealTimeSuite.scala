// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

/** Before 4.3 Spark refuses stateful operators in real-time mode. */
class RealTimeSuite extends RealTimeBehaviour {
  test("real-time mode is refused for stateful queries, in Spark's words") {
    Seq(stock, ours).foreach { contender =>
      val error = failure(realTime(contender, checked = true, fresh("real-time")): Unit)
      assert(error.contains("STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"), error)
      assert(error.contains("StateStoreSaveExec"), error)
    }
  }

  test("real-time mode with Spark's check switched off gives the same with the state in the log, across a restart") {
    compareRealTime(ours, checked = false)
  }
}
