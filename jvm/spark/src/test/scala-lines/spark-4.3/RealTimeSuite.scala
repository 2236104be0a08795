// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

/** Spark 4.3 runs the stages of a stateful query at the same time, and accepts only its own provider's name. */
class RealTimeSuite extends RealTimeBehaviour {
  test("real-time mode refuses our provider by name, in Spark's words") {
    val error = failure(realTime(ours, checked = true, fresh("real-time")): Unit)
    assert(error.contains("STREAMING_REAL_TIME_MODE.SQL_CONFIGURATION_NOT_SUPPORTED"), error)
    assert(error.contains("spark.sql.streaming.stateStore.providerClass must be"), error)
  }

  test("real-time mode with stock's name gives the same with the state in the log, across a restart") {
    compareRealTime(below, checked = true)
  }
}
