package org.apache.spark.sql.execution.streaming.state.dstl

import java.sql.Timestamp

import sparkdstl.testing.CountingFileSystem

import org.apache.spark.sql.{DataFrame, SQLContext}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.OutputMode

/** What a batch costs in object writes, counted at the file system. */
class RequestCountSuite extends QuerySuite {
  private val measuredBatches = 3

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2,
    // Snapshots are not what is counted here; both sides upload the same ones.
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "1h",
    // Nor are hedges, which a busy machine makes necessary and which are one request more each.
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

  /** Object writes in `measuredBatches` batches, after the first two, which also write schemas and metadata. */
  private def writes(partitions: Int, operators: Int, more: Map[String, String]): Seq[String] = {
    stopSpark()
    startSpark((more + ("spark.sql.shuffle.partitions" -> partitions.toString)).toSeq: _*)
    val session = spark
    import session.implicits._
    implicit val context: SQLContext = spark.sqlContext
    val input = MemoryStream[(Int, Timestamp)]
    val (result, mode) =
      if (operators == 1) (oneOperator(input.toDF()), OutputMode.Complete())
      else (twoOperators(input.toDF()), OutputMode.Append())
    val at = s"counting://$directory/checkpoint-$partitions-$operators-${more.size}"
    val query = start(result, s"counted", mode, at)
    def batch(number: Int): Unit = {
      input.addData((1 to 50).map(value => (value, new Timestamp(number * 1000L))))
      query.processAllAvailable()
    }
    try {
      (0 until 2).foreach(batch)
      val before = query.lastProgress.batchId
      CountingFileSystem.reset()
      (2 until 2 + measuredBatches).foreach(batch)
      assert(query.lastProgress.batchId - before == measuredBatches)
      CountingFileSystem.snapshot().written.map(_.toString)
    } finally query.stop()
  }

  for {
    operators <- Seq(1, 2)
    partitions <- Seq(4, 16, 64)
  } test(
    s"a batch costs exactly the object writes that it costs without durable state: $operators operator(s), $partitions partitions"
  ) {
    val without = writes(partitions, operators, floor)
    val durable = writes(partitions, operators, Map.empty)
    assert(without.size == 2 * measuredBatches, without)
    assert(durable.size == without.size, durable)
  }
}
