// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.sql.Timestamp

import sparkdstl.testing.{CountingFileSystem, Operation}

import org.apache.spark.sql.{DataFrame, Encoders}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.execution.streaming.state.dstl.{DiscardingFileManager, QuerySuite, SparkFacts}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.{OutputMode, Trigger}

/**
 * Counts the requests of a batch at a file system that publishes an object when its stream is closed and creates exclusively.
 */
class RequestCountSuite extends QuerySuite {
  import RequestCountSuite._

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2,
    // The count excludes maintenance, which sends requests in the background.
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h",
    // The count excludes hedges, each of which is one more request and which a busy machine causes.
    option("upload.retryPolicy") -> "none"
  )

  private val floor = Map(
    "spark.sql.streaming.stateStore.providerClass" -> classOf[RocksDBStateStoreProvider].getName,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true",
    "spark.sql.streaming.checkpointFileManagerClass" -> classOf[DiscardingFileManager].getName
  )

  private def oneOperator(input: DataFrame): DataFrame = input.groupBy((col("_1") % 20).as("key")).count()

  private def twoOperators(input: DataFrame): DataFrame =
    input.withWatermark("_2", "1 minute").dropDuplicates("_1", "_2").groupBy(window(col("_2"), "10 seconds")).count()

  /** Requests below the checkpoint in `MeasuredBatches` batches, after the first ones, which also write schemas and metadata. */
  private def requests(of: Measured, more: Map[String, String]): CountingFileSystem.Counts = {
    stopSpark()
    startSpark((more ++ Map(
      "spark.sql.shuffle.partitions" -> of.partitions.toString,
      "spark.sql.streaming.stateStore.checkpointFormatVersion" -> of.format.toString
    )).toSeq: _*)
    val input = MemoryStream[(Int, Timestamp)](Encoders.product[(Int, Timestamp)], spark)
    val (result, mode) =
      if (of.operators == 1) (oneOperator(input.toDF()), OutputMode.Complete())
      else (twoOperators(input.toDF()), OutputMode.Append())
    val query = start(result, s"counted", mode, s"counting://$directory/checkpoint-${more.size}")
    def batch(number: Int): Unit = {
      input.addData((1 to 50).map(value => (value, new Timestamp(number * 1000L))))
      query.processAllAvailable()
    }
    try {
      (0 until UnmeasuredBatches).foreach(batch)
      val before = query.lastProgress.batchId
      CountingFileSystem.reset()
      (UnmeasuredBatches until UnmeasuredBatches + MeasuredBatches).foreach(batch)
      assert(query.lastProgress.batchId - before == MeasuredBatches)
      CountingFileSystem.snapshot()
    } finally query.stop()
  }

  for (
    of <- Seq(
      Measured(format = 1, operators = 1, partitions = 64),
      Measured(format = 1, operators = 2, partitions = 16),
      Measured(format = 2, operators = 1, partitions = 64),
      Measured(format = 2, operators = 2, partitions = 4)
    )
  ) test(
    s"a batch costs two object writes and no read: checkpoint format version ${of.format}, ${of.operators} operator(s), " +
      s"${of.partitions} partitions"
  ) {
    val durable = requests(of, Map.empty)
    assert(durable.written.size == 2 * MeasuredBatches, durable.paths)
    assert(durable.paths.keySet == Set[Operation](Operation.Write), durable.paths)
  }

  for ((name, trigger) <- RequestCountSuite.triggers)
    test(s"each run claims the checkpoint before Spark lists its commits, trigger $name") {
      val input = MemoryStream[(Int, Timestamp)](Encoders.product[(Int, Timestamp)], spark)
      (1 to 3).foreach { run =>
        input.addData((1 to 50).map(value => (value, new Timestamp(run * 1000L))))
        CountingFileSystem.reset()
        val query = oneOperator(input.toDF()).writeStream.format("noop").outputMode(OutputMode.Complete())
          .trigger(trigger).option("checkpointLocation", s"counting://$checkpoint").start()
        try query.processAllAvailable()
        finally query.stop()
        val before = RequestCountSuite.commitsListedBeforeClaim()
        assert(before == 1, s"run $run: one listing is the claim's own")
      }
    }

  // Without local state between batches each batch needs durable state.
  if (SparkFacts.KeepsLocalState)
    test("without durable state a batch costs as many object writes, and reads in addition") {
      val without = requests(Measured(format = 1, operators = 1, partitions = 4), floor)
      assert(without.written.size == 2 * MeasuredBatches, without.paths)
      assert(without(Operation.Head) >= MeasuredBatches, without.paths)
    }
}

private[dstl] object RequestCountSuite {
  val UnmeasuredBatches = 3
  val MeasuredBatches = 3

  @annotation.nowarn("cat=deprecation")
  private def once: Trigger = Trigger.Once()

  val triggers: Seq[(String, Trigger)] =
    Seq("processing-time" -> Trigger.ProcessingTime(0), "available-now" -> Trigger.AvailableNow(), "once" -> once)

  /** How often `commits/` was listed since the last reset of the counts, before a run had written its claim. */
  def commitsListedBeforeClaim(): Int = {
    // A run can have to mark the claim of the run before as ended first.
    val (before, claim) = CountingFileSystem.snapshot().requests.span { case (operation, path) =>
      operation != Operation.Write || !path.toString.contains("/dstl/epochs/") || path.toString.contains(".ended")
    }
    assert(claim.nonEmpty, "no run has claimed the checkpoint")
    // Spark checks first that a checkpoint without metadata has no commits, which only leads to an error.
    val asOfMetadata = before.indexWhere { case (operation, path) =>
      operation == Operation.Write && path.getName == "metadata"
    }
    before.drop(asOfMetadata + 1).count { case (operation, path) =>
      operation == Operation.List && path.toString.endsWith("/commits")
    }
  }

  final case class Measured(format: Int, operators: Int, partitions: Int)
}
