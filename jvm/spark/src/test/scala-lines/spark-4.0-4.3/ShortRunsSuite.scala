// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import scala.annotation.nowarn

import sparkdstl.log.format.SegmentKind

import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.streaming.state.dstl.{LoggedBatches, QuerySuite, SparkFacts, StateStores}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.Trigger

/** A query that commits one batch per run: its log is as short as that of a continuous query. */
@nowarn("cat=deprecation")
class ShortRunsSuite extends QuerySuite {
  private val retained = 2
  private val runs = 16

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.sql.streaming.minBatchesToRetain" -> retained.toString,
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h"
  )

  for ((format, name, trigger) <- Seq(("1", "availableNow", Trigger.AvailableNow()), ("2", "once", Trigger.Once())))
    test(s"$runs runs of one batch leave few entries, and a start replays few of them, $name, format $format") {
      spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", format)
      (0 until runs).foreach { run =>
        val input = numbers()
        (0 to run).foreach(batch => input.addData(0 until 10 + batch))
        start(counts(input), s"run$format$run", trigger = trigger).awaitTermination()
        // A scheduler starts each run of such a query in another process.
        StateStores.close()
        val entries = LoggedBatches.entries(checkpoint)
        assert(entries.last == run && entries.size <= retained + 5, entries)
        // The next run loads version `run` + 1.
        val newest = LoggedBatches.indexes(checkpoint).flatMap(_.entries).map(_.key)
          .filter(_.kind == SegmentKind.Snapshot).groupBy(_.partition).map { case (store, of) =>
            store -> of.map(_.version).max
          }
        (0 until 3).foreach(store =>
          assert(run + 1 - newest.getOrElse(store, 0L) <= 2, s"store $store after run $run: $newest")
        )
      }
      val expected = (0 until runs).flatMap(batch => 0 until 10 + batch).groupBy(_ % 7).map { case (key, of) =>
        Row(key, of.size.toLong)
      }.toSet
      if (SparkFacts.ReadableFormats.contains(format.toInt)) {
        val state = spark.read.format("statestore").load(checkpoint.toString)
          .select(col("key._groupingexpression"), col("value.count")).collect().toSet
        assert(state == expected)
      }
      val claims = files().filter(_.matches("dstl/epochs/\\d+(\\.ended)?"))
      assert(claims.size <= 4, s"runs that ended leave no fences: $claims")
    }
}
