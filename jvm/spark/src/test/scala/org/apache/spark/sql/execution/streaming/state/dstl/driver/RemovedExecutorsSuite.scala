// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.Causes
import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.transport.{SealedPart, SealedSegment, ToDriver}

import org.apache.spark.scheduler.SparkListenerExecutorRemoved
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.state.dstl.{DstlEnvironment, QuerySuite}
import org.apache.spark.sql.streaming.OutputMode

/** An executor that Spark removes because its heartbeats are missing, while its connection stays open. */
class RemovedExecutorsSuite extends QuerySuite {

  // Far above the delay of the report, and short for a run in which the report is missing.
  override protected def configuration: Map[String, String] =
    super.configuration + (option("commit.timeout") -> "90s")

  test("a batch with changes that only a removed executor holds fails without a wait for commit.timeout") {
    val frozen = "7"
    val root = new Path(checkpoint.toUri)
    val sink = (rows: DataFrame, batch: Long) => {
      rows.collect(): Unit
      if (batch == 1) {
        val run = DstlEnvironment.get.driver.flatMap(_.on(root)).get.coordinator
        val key = SegmentKey(0, 99, "", 2, None, SegmentKind.Changelog)
        val pending = SealedSegment(key, None, Vector(SealedPart.Pending(1, 1000)))
        run.answer(frozen, ToDriver.Seal(1000, batch, Vector(pending), Vector.empty)): Unit
        spark.sparkContext.listenerBus
          .post(SparkListenerExecutorRemoved(System.currentTimeMillis(), frozen, "Executor heartbeat timed out"))
      }
    }
    val input = numbers()
    val query = counts(input).writeStream.outputMode(OutputMode.Update())
      .option("checkpointLocation", checkpoint.toString).foreachBatch(sink).start()
    val error = failure {
      feed(query, input, 1 to 3)
      input.addData(4)
      query
    }
    val lost = Causes.of(error).map(_.getMessage).find(_.startsWith("[DSTL_LOST_CHANGES] Batch 1"))
    assert(
      lost.exists(_.contains("partition 99 (executor 7: Spark has removed it: Executor heartbeat timed out)")),
      error.getMessage
    )
  }
}
