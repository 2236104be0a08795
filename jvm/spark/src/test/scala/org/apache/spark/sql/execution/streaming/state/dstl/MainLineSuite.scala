package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.{DataFrame, Encoders}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._

/** A stateful query with its state in the log, from the first batch to recovery. */
class MainLineSuite extends QuerySuite {

  private def counts(input: MemoryStream[Int]): DataFrame = input.toDF().groupBy((col("value") % 7).as("key")).count()

  private def expected(values: Seq[Int]): Set[String] =
    values.groupBy(_ % 7).map { case (key, of) => s"[$key,${of.size}]" }.toSet

  private def runBatches(input: MemoryStream[Int], name: String, batches: Seq[Seq[Int]]): Unit = {
    val query = start(counts(input), name)
    try batches.foreach { batch =>
        input.addData(batch)
        query.processAllAvailable()
      }
    finally query.stop()
  }

  for (format <- Seq("1", "2")) test(
    s"a query's changelogs are in the log, none is a file, and a restart continues from them, checkpoint format version $format"
  ) {
    spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", format)
    val input = MemoryStream[Int](Encoders.scalaInt, spark)
    runBatches(input, "before", Seq(1 to 10, 11 to 20))
    val all = files()
    assert(all.filter(_.endsWith(".changelog")) == Nil)
    assert(all.filter(_.startsWith("dstl/data/")) == Nil)
    assert(all.filter(name => name.startsWith("commits/") && !name.contains(".")) == Seq("commits/0", "commits/1"))
    runBatches(input, "after", Seq(21 to 30, 31 to 33))
    assert(rows("after") == expected(1 to 33))
    assert(LoggedBatches.of(checkpoint) == Set(0, 1, 2, 3))
  }
}
