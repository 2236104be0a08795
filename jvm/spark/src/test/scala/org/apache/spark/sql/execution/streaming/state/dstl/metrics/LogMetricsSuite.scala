// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.{DstlEnvironment, QuerySuite, SparkFacts}

class LogMetricsSuite extends QuerySuite {

  test("a task finds a metric by its key, whatever its label is, and no other metric of that label") {
    val declared = LogMetrics.all.find(_.name == "dstlReplayedRecords").get
    val label = declared.desc.stripSuffix(" [dstlReplayedRecords]")
    assert(label != declared.desc)
    val context = spark.sparkContext
    val unlike = SQLMetrics.createMetric(context, label)
    val renamed = SQLMetrics.createMetric(context, declared.desc.replace(label, "another label"))
    val task = TaskContext.empty()
    Seq(unlike, renamed).foreach(task.registerAccumulator)
    LogMetrics.loaded(task, segments = 0, bytes = 0, records = 7)
    assert(renamed.value == 7 && unlike.value == 0)
  }

  test("the progress of a query contains the metrics of the log") {
    val input = numbers()
    val query = start(counts(input), "measured")
    try {
      (0 until 2).foreach(batch => feed(query, input, batch * 10 until batch * 10 + 10))
      val metrics = query.lastProgress.stateOperators.head.customMetrics
      assert(LogMetrics.all.map(_.name).filterNot(metrics.containsKey(_)) == Nil)
      // Spark's own metrics are there too, such as this one of RocksDB.
      assert(metrics.containsKey("rocksdbGetCount"), metrics)
      assert(metrics.get("dstlInlineBytes") > 0, metrics)
      assert(metrics.get("dstlSegments") == 3 * SparkFacts.ChangelogFiles, metrics)
      assert(metrics.get("dstlCommitEntryBytes") > 0, metrics)
    } finally query.stop()
    val replayedBefore = DstlEnvironment.get.resources.replayMetrics.replayed.value
    val again = start(counts(input), "recovered")
    try {
      feed(again, input, 20 until 30)
      val metrics = again.lastProgress.stateOperators.head.customMetrics
      assert(metrics.get("dstlReplayedSegments") >= 3 && metrics.get("dstlReplayedBytes") > 0, metrics)
      // Of each of the two batches before the counts of all seven keys changed.
      assert(metrics.get("dstlReplayedRecords") == 2 * 7, metrics)
      assert(DstlEnvironment.get.resources.replayMetrics.replayed.value == replayedBefore + 2 * 7)
      feed(again, input, 30 until 40)
      val after = again.lastProgress.stateOperators.head.customMetrics
      assert(after.get("dstlReplayedRecords") == 0, after)
    } finally again.stop()
  }
}
