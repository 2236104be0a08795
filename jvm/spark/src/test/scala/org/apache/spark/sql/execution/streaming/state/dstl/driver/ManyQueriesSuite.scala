// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.streaming.state.dstl.{QuerySuite, StoredStateShims}
import org.apache.spark.sql.streaming.OutputMode

/** One process runs many stateful queries, whose stores stay loaded. */
class ManyQueriesSuite extends QuerySuite {
  // More runs with open stores than the 64 idle ones that a process remembers: a run that begins is idle, and must stay.
  private val queries = 300

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.sql.shuffle.partitions" -> "1",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h"
  )

  private def checkpoint(number: Int): String = directory.resolve(s"query-$number").toString

  private def run(number: Int, batches: Int)(sink: DataFrame => Unit): Unit = {
    val input = numbers()
    (1 to batches).foreach(_ => input.addData(number))
    val query = input.toDF().groupBy("value").count().writeStream.outputMode(OutputMode.Update())
      .option("checkpointLocation", checkpoint(number))
      .foreachBatch((rows: DataFrame, _: Long) => sink(rows)).start()
    complete(query)
  }

  // RememberedRunsSuite tests the same with runs alone.
  if (isWhole) test("each query restarts on its state, and one reads the state of all others") {
    (1 to queries).foreach(run(_, batches = 1)(_.count(): Unit))
    val seen = new ConcurrentLinkedQueue[(Int, Long)]
    (1 to queries).foreach(run(_, batches = 2) { rows =>
      rows.collect().foreach(row => seen.add((row.getInt(0), row.getLong(1))))
    })
    assert(seen.asScala.toSeq == (1 to queries).map((_, 2L)))
    val states = new ConcurrentLinkedQueue[Seq[String]]
    run(0, batches = 1) { rows =>
      rows.count(): Unit
      (1 to queries).foreach(number =>
        states.add(StoredStateShims.read(rows.sparkSession, checkpoint(number), Map.empty))
      )
    }
    assert(states.size == queries && states.asScala.forall(_.size == 1))
  }
}
