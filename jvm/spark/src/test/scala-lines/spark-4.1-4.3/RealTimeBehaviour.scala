// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.operators

import java.nio.file.{Path => LocalPath}

import org.scalatest.Assertion

import sparkdstl.testing.CountingFileSystem

import org.apache.spark.sql.{Encoders, ForeachWriter, Row}
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.execution.streaming.state.dstl.files.RequestCountSuite
import org.apache.spark.sql.streaming.OutputMode

/** Real-time mode has the same results as with stock Spark, in lines that have it for stateful queries. */
abstract class RealTimeBehaviour extends ComparisonSuite with Patience {
  // All stages of a batch run at once.
  override protected def master: String = "local[6]"

  /** The same with stock Spark and with the state in the log, over a restart. */
  protected def compareRealTime(logged: Contender, checked: Boolean): Assertion = {
    val runs = Seq(stock, logged).map { contender =>
      val checkpoint = fresh(contender.name)
      val counted = contender != stock
      (checkpoint, realTime(contender, checked, checkpoint, if (counted) CountingFileSystem.Scheme else "file"))
    }
    assert(runs.head._2.nonEmpty)
    assert(runs(1)._2 == runs.head._2)
    assert(LoggedBatches.of(runs(1)._1).nonEmpty)
    assert(files(runs(1)._1).filter(_.endsWith(".changelog")) == Nil)
  }

  /**
   * The final rows of a running count, over two runs in real-time mode.
   *
   * @param scheme of the file system; if that counts requests, each run must claim the checkpoint before Spark lists commits
   */
  protected def realTime(
      contender: Contender,
      checked: Boolean,
      checkpoint: LocalPath,
      scheme: String = "file"
  ): Map[String, Long] = {
    val own = session(contender.and(
      "spark.sql.streaming.realTimeMode.minBatchDuration" -> "500",
      "spark.sql.streaming.realTimeMode.allowlistCheck" -> checked.toString,
      CountingFileSystem.entry
    ))
    val input = new LowLatencyMemoryStream[Event](0, own, 1)(Encoders.product[Event])
    RealTimeRows.clear()
    var added = 0L
    def play(events: Seq[Event]): Unit = {
      input.addData(events)
      added += events.size
      CountingFileSystem.reset()
      val query = input.toDF().groupBy("key").count().writeStream.outputMode(OutputMode.Update())
        .trigger(RealTimeTrigger("500 milliseconds")).option("checkpointLocation", s"$scheme://$checkpoint")
        .foreach(new RealTimeRows).start()
      try {
        // A batch may end before its tasks have read a row.
        eventually(assert(query.exception.nonEmpty || RealTimeRows.all.valuesIterator.sum == added))
        query.processAllAvailable()
      } finally query.stop()
      assert(scheme != CountingFileSystem.Scheme || RequestCountSuite.commitsListedBeforeClaim() == 1)
      ()
    }
    play(batches.head._1)
    play(batches(1)._1)
    RealTimeRows.all
  }
}

/** Keeps the newest row of each key; outside of the suite, because Spark serializes it. */
class RealTimeRows extends ForeachWriter[Row] {
  override def open(partition: Long, epoch: Long): Boolean = true
  override def process(row: Row): Unit = RealTimeRows.put(row.getString(0), row.getLong(1))
  override def close(error: Throwable): Unit = ()
}

object RealTimeRows {
  // Guarded by this.
  private var rows = Map.empty[String, Long]

  def put(key: String, count: Long): Unit = synchronized { rows = rows.updated(key, count) }
  def clear(): Unit = synchronized { rows = Map.empty }
  def all: Map[String, Long] = synchronized(rows)
}
