// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.FileTime
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.execution.streaming.state.dstl.ComparisonSuite
import org.apache.spark.sql.functions.{col, timestamp_seconds, unix_timestamp, window}
import org.apache.spark.sql.streaming.{DataStreamWriter, Trigger}

/**
 * Sinks that identify a batch by its number skip one whose output they have. A driver can die between the sink's commit and the
 * commit entry, which commits the batch.
 */
class SkippedBatchesSuite extends ComparisonSuite {
  private val lines = Seq("a b", "b c", "a d", "d e")

  /** One file for each batch, in order. */
  private def add(input: LocalPath, number: Int, line: String): Unit = {
    val file = Files.write(input.resolve(s"$number.txt"), line.replace(' ', '\n').getBytes(UTF_8))
    Files.setLastModifiedTime(file, FileTime.fromMillis(1000L * (number + 1))): Unit
  }

  private final class Place(name: String) {
    private val root = Files.createTempDirectory(directory, name)
    val input: LocalPath = Files.createDirectory(root.resolve("input"))
    val output: LocalPath = root.resolve("output")
    val checkpoint: LocalPath = root.resolve("checkpoint")
  }

  /** Runs a query for two batches, and for two more as if it had died before the commit of batch 1. */
  private def run(session: SparkSession, place: Place)(sink: DataStreamWriter[Row] => DataStreamWriter[Row]): Unit = {
    val words: DataFrame =
      session.readStream.option("maxFilesPerTrigger", "1").text(place.input.toString).dropDuplicates("value")
    def play(batches: Range): Unit = {
      batches.foreach(number => add(place.input, number, lines(number)))
      sink(words.writeStream.option("checkpointLocation", place.checkpoint.toString).trigger(Trigger.AvailableNow()))
        .start().awaitTermination()
    }
    play(0 to 1)
    Files.delete(place.checkpoint.resolve("commits/1"))
    play(2 to 3)
  }

  private def written(session: SparkSession, place: Place): Seq[String] =
    session.read.text(place.output.toString).collect().map(_.getString(0)).sorted.toSeq

  for (contender <- Seq(stock, ours))
    test(s"a batch that a file sink skips changes the state: ${contender.name}") {
      val own = session(contender)
      val place = new Place(contender.name)
      run(own, place)(_.format("text").option("path", place.output.toString))
      assert(written(own, place) == Seq("a", "b", "c", "d", "e"))
    }

  // Stock Spark fails the batch as one that was executed in part.
  test("a foreachBatch function may skip a batch that it has processed before") {
    val own = session(ours)
    val place = new Place("seen")
    val seen = new ConcurrentHashMap[Long, Seq[String]]
    run(own, place)(_.foreachBatch { (batch: DataFrame, number: Long) =>
      if (!seen.containsKey(number)) seen.put(number, batch.collect().map(_.getString(0)).sorted.toSeq): Unit
    })
    assert(seen.asScala.toMap == Map(0L -> Seq("a", "b"), 1L -> Seq("c"), 2L -> Seq("d"), 3L -> Seq("e")))
  }

  // Stock Spark fails the next batch, whose tasks lack the state of the others.
  test("a foreachBatch function may read only some partitions of a batch") {
    val own = session(ours)
    val place = new Place("some")
    val counts = new ConcurrentHashMap[Long, Set[Long]]
    val words = own.readStream.text(place.input.toString).groupBy("value").count()
    (0 to 5).foreach { number =>
      Files.writeString(place.input.resolve(s"$number.txt"), (0 until 12).mkString("\n"))
      words.writeStream.outputMode("update").option("checkpointLocation", place.checkpoint.toString)
        .trigger(Trigger.AvailableNow()).foreachBatch { (batch: DataFrame, number: Long) =>
          val reads = Map(1L -> 1, 4L -> 9).getOrElse(number, 0)
          if (reads > 0) (1 to reads).foreach(_ => batch.first())
          else counts.put(number, batch.collect().map(_.getLong(1)).toSet): Unit
        }.start().awaitTermination()
    }
    assert(counts.asScala.toMap == Map(0L -> Set(1L), 2L -> Set(3L), 3L -> Set(4L), 5L -> Set(6L)))
  }

  // Else it stays where it was, state is never removed, and windows come out again after a rollback.
  test("the watermark passes batches of which a foreachBatch function reads nothing") {
    val own = session(ours)
    val place = new Place("watermark")
    val starts = new ConcurrentHashMap[Long, Seq[Long]]
    val at = timestamp_seconds(col("value").cast("long"))
    val counts = own.readStream.option("maxFilesPerTrigger", "1").text(place.input.toString).select(at.as("at"))
      .withWatermark("at", "0 seconds").groupBy(window(col("at"), "10 seconds")).count()
    def play(batches: Range): Unit = {
      batches.foreach(number => add(place.input, number, s"${number}0"))
      counts.select(unix_timestamp(col("window.start"))).writeStream
        .option("checkpointLocation", place.checkpoint.toString).trigger(Trigger.AvailableNow())
        .foreachBatch { (batch: DataFrame, number: Long) =>
          if (number % 2 == 0 && number > 0) starts.put(number, batch.collect().map(_.getLong(0)).toSeq): Unit
        }.start().awaitTermination()
    }
    own.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    play(0 to 3)
    play(4 to 4)
    assert(starts.asScala.toMap == Map(2L -> Seq(0L), 4L -> Seq(20L)))
  }
}
