// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.spark.sql.execution.streaming.state.dstl.driver.{DrivenQuery, StreamThread}

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

class StreamThreadSuite extends AnyFunSuite {
  private val id = new UUID(1, 1)
  private val run = new UUID(2, 2)

  test("the name of a query thread contains the run, for any name of the query") {
    Seq("", "name ", "daily\ntotals ", "[id = x, runId = y] ", s"[id = $id, runId = $id] ").foreach { name =>
      assert(StreamThread.queryIn(s"stream execution thread for $name[id = $id, runId = $run]").contains(DrivenQuery(
        id,
        run
      )))
    }
    assert(StreamThread.queryIn("main").isEmpty)
  }

  test("a thread that is not a query's drives no run") {
    assert(StreamThread.query.isEmpty)
  }
}
