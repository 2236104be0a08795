// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.metrics

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.execution.streaming.state.dstl.QuerySuite

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
}
