// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Files, Path => LocalPath}

import org.scalatest.BeforeAndAfterEach

import sparkdstl.testing.LocalFiles

import org.apache.spark.sql.{DataFrame, Encoders}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, Trigger}

/** Runs real queries in this process, each test with a new Spark and a directory that is emptied afterwards. */
abstract class QuerySuite extends LocalSpark with BeforeAndAfterEach {

  /** SQL configurations of each test's session. */
  protected def configuration: Map[String, String] = Map(
    providerKey -> classOf[DstlStateStoreProvider].getName,
    fileManagerKey -> classOf[DstlCheckpointFileManager].getName
  )

  override def beforeEach(): Unit = {
    super.beforeEach()
    directory = Files.createTempDirectory("dstl-query")
    startSpark()
  }

  override def afterEach(): Unit =
    try {
      stopSpark()
      LocalFiles.delete(directory)
    } finally super.afterEach()

  protected def startSpark(more: (String, String)*): Unit = {
    val own = Map("spark.sql.shuffle.partitions" -> "3", "spark.sql.streaming.minBatchesToRetain" -> "100")
    spark = createSpark(own ++ configuration ++ more)
  }

  protected def stopSpark(): Unit = {
    spark.streams.active.foreach(_.stop())
    spark.stop()
    StateStore.stop()
  }

  protected def checkpoint: LocalPath = directory.resolve("checkpoint")

  protected def configure(more: (String, String)*): Unit = more.foreach { case (key, value) =>
    spark.conf.set(key, value)
  }

  protected def numbers(): MemoryStream[Int] = MemoryStream[Int](Encoders.scalaInt, spark)

  /** How many numbers have the same remainder. */
  protected def counts(input: MemoryStream[Int], keys: Int = 7): DataFrame =
    input.toDF().groupBy((col("value") % keys).as("key")).count()

  /** The rows of the counts of these numbers. */
  protected def counted(values: Seq[Int]): Set[String] =
    values.groupBy(_ % 7).map { case (key, of) => s"[$key,${of.size}]" }.toSet

  /** Starts `result` into the memory table `name`. */
  protected def start(
      result: DataFrame,
      name: String,
      mode: OutputMode = OutputMode.Complete(),
      at: String = checkpoint.toString,
      trigger: Trigger = Trigger.ProcessingTime(0)
  ): StreamingQuery =
    result.writeStream.format("memory").queryName(name).outputMode(mode).trigger(trigger)
      .option("checkpointLocation", at).start()

  /** Adds `values`, and waits until the query has processed them. */
  protected def feed(query: StreamingQuery, input: MemoryStream[Int], values: Seq[Int]): Unit = {
    input.addData(values)
    query.processAllAvailable()
  }

  /** Lets a query process these batches, and stops it. */
  protected def complete(query: StreamingQuery, input: MemoryStream[Int], batches: Seq[Int]*): Unit =
    try batches.foreach(feed(query, input, _))
    finally query.stop()

  protected def rows(table: String): Set[String] = spark.table(table).collect().map(_.toString).toSet

  /** All files below the checkpoint, as paths relative to it. */
  protected def files(below: LocalPath = checkpoint): Seq[String] = LocalFiles.below(below)

  protected def failure(query: => StreamingQuery): Throwable = intercept[Exception](complete(query))
}
