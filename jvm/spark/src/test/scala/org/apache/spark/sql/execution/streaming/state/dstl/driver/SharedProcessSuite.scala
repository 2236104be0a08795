// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.file.{Path => LocalPath}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import sparkdstl.testing.LocalFiles

import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.streaming.StreamingQuery

/** Queries of one process on one checkpoint: a reader does not affect the writer. */
class SharedProcessSuite extends ComparisonSuite {
  private val operator = Operator.totals

  private def copy(from: LocalPath, to: LocalPath): LocalPath = {
    LocalFiles.copy(from, to)
    to
  }

  private def state(session: SparkSession, at: LocalPath): Seq[String] =
    StoredStateShims.read(session, at.toString, Map.empty)

  for (version <- SparkFacts.ReadableFormats)
    test(
      s"a query's foreachBatch reads another query's state, its own and a copy of it, and both continue and restart, " +
        s"checkpoint format version $version"
    ) {
      val Seq(stockSpark, contender) = inFormat(version, stock, ours): @unchecked
      val expected = expectedOf(operator, stockSpark)
      val read = new Playing(operator, contender, fresh("read"))
      val reading = fresh("reading")
      val seen = new ConcurrentLinkedQueue[(Long, Seq[String], Seq[String], Seq[String])]
      val inputs = new Inputs(read.session)
      val sink = (rows: DataFrame, id: Long) => {
        val session = rows.sparkSession
        rows.collect(): Unit
        val own = if (id == 0) Nil else state(session, reading)
        val copied = if (id == 0) Nil else state(session, copy(reading, fresh(s"copy-$id")))
        seen.add((id, state(session, read.checkpoint), own, copied)): Unit
      }
      def startReader(): StreamingQuery = operator.build(inputs).writeStream.outputMode(operator.mode)
        .option("checkpointLocation", reading.toString).foreachBatch(sink).start()
      def feedReader(query: StreamingQuery, batch: Seq[Event]): Unit = {
        inputs.left.addData(batch)
        query.processAllAvailable()
      }
      var reader = startReader()
      var query = read.start()
      try
        batches.foreach { batch =>
          read.feed(query, batch)
          feedReader(reader, batch._1)
          if (batch == batches(1)) {
            query.stop()
            query = read.start()
            reader.stop()
            reader = startReader()
          }
        }
      finally {
        query.stop()
        reader.stop()
      }
      assert(read.output == expected.batches)
      val ids = expected.batches.keySet.toSeq.sorted
      val states = ids.map { batch =>
        StoredStateShims.read(read.session, read.checkpoint.toString, Map("batchId" -> batch.toString))
      }
      assert(Seq(states.last) == expected.state)
      // The reader has the same input, so its own state is the other's, one batch behind.
      assert(seen.asScala.toSeq.map(_._2) == states)
      assert(seen.asScala.toSeq.map(_._3) == Nil +: states.init)
      assert(seen.asScala.toSeq.map(_._4) == Nil +: states.init)
      Seq(read.checkpoint, reading).foreach(assertInLog(_, expected.batches.keySet))
    }

  test(
    "a query that is started on a checkpoint where another session's runs takes its place and continues from its state"
  ) {
    val expected = expectedOf(operator)
    val at = fresh("taken")
    val first = new Playing(operator, ours, at)
    val before = first.start()
    try {
      first.feed(before, batches.head)
      first.feed(before, batches(1))
      val second = new Playing(operator, ours, at)
      batches.take(2).foreach(second.add)
      // Spark stops a query if another one of the same process starts on its checkpoint.
      second.play(batches.drop(2))
      assert(!before.isActive)
      assert(first.output ++ second.output == expected.batches)
      assert(second.readState(Map.empty) == expected.state.head)
      assertInLog(at, expected.batches.keySet)
      assert(LoggedBatches.index(at, 2).get.writer.epoch > LoggedBatches.index(at, 1).get.writer.epoch)
    } finally before.stop()
  }
}
