// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import scala.util.Random

import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.OutputMode

/**
 * A stateful query with equal batches: tasks turn one tick of input into `rows` rows.
 *
 * @param build the query over rows of (tick, number, key, time), numbers counting up and time moving a minute a tick
 */
final case class Workload(name: String, rows: Int, outputMode: OutputMode, build: DataFrame => DataFrame)

object Workload {
  private val keys = 10000

  private val aggregation = totals("aggregation", 2000, col("key"))

  private val windows = Workload(
    "windows",
    2000,
    OutputMode.Update(),
    _.withWatermark("time", "20 minutes")
      .groupBy(window(col("time"), "10 minutes", "5 minutes"), col("key"))
      .agg(count("*").as("count"), sum("number").as("sum"))
  )

  /** Each row joins its copy: both sides hold ten minutes of rows. */
  private val join = Workload(
    "join",
    2000,
    OutputMode.Append(),
    rows => {
      val left = rows.withWatermark("time", "10 minutes")
      val right = rows.select(col("number").as("rightNumber"), col("key").as("rightKey"), col("time").as("rightTime"))
        .withWatermark("rightTime", "10 minutes")
      left.join(
        right,
        expr("number = rightNumber AND key = rightKey AND rightTime BETWEEN time AND time + INTERVAL 1 MINUTE")
      )
    }
  )

  /** 100 MB of incompressible changes a batch: the same keys each time, each with new content of 1 KiB. */
  private val large = contents("large", 100 * 1000, (col("number") % 100000).as("key"), 1024)

  /** 10 MB of such changes a batch: for many batches. */
  private val medium = contents("medium", 10 * 1000, (col("number") % 10000).as("key"), 1024)

  /** An incompressible state that grows by 640 KiB a tick: each row is a new key, with content of 16 KiB. */
  private val wide = contents("wide", 40, col("number").as("key"), 16 * 1024)

  /** Some MiB of such changes a batch. */
  private val sized = Seq(1, 4, 16, 64).map { mib =>
    contents(s"changes-$mib", mib * 1024, (col("number") % (mib * 1024)).as("key"), 1024)
  }

  private def contents(name: String, rows: Int, key: Column, bytes: Int): Workload = Workload(
    name,
    rows,
    OutputMode.Update(),
    rows => {
      val content = udf((seed: Long) => new Random(seed).nextBytes(bytes))
      rows.select(key, content(col("number")).as("content"))
        .groupBy("key").agg(last("content").as("content"))
        // With the content: it would not be in the state otherwise.
        .select(col("key"), length(col("content")))
    }
  )

  /** The aggregation's source and shuffle, without state. */
  private val stateless = Workload(
    "stateless",
    2000,
    OutputMode.Append(),
    rows => rows.repartition(rows.sparkSession.conf.get("spark.sql.shuffle.partitions").toInt, col("key"))
  )

  /** The aggregation over 200,000 keys, each once in a hundred ticks. */
  private val accounts = totals("accounts", 2000, (col("number") % 200000).as("key"))

  /** Work for the processor: 200,000 rows a batch, which change 50,000 keys. */
  private val busy = totals("busy", 200 * 1000, (col("number") % 50000).as("key"))

  /** Counts and sums the rows of each key. */
  private def totals(name: String, rows: Int, key: Column): Workload =
    Workload(name, rows, OutputMode.Update(), _.groupBy(key).agg(count("*").as("count"), sum("number").as("sum")))

  val all: Seq[Workload] = Seq(aggregation, windows, join, large, medium, wide, stateless, busy, accounts) ++ sized

  /** @throws IllegalArgumentException naming the workloads that there are */
  def named(name: String): Workload = all.find(_.name == name).getOrElse(
    throw new IllegalArgumentException(s"no workload is named $name; there are ${all.map(_.name).mkString(", ")}")
  )

  /** The query over a memory stream of ticks. */
  def over(ticks: MemoryStream[Long], workload: Workload): DataFrame = workload.build(
    ticks.toDF().toDF("tick")
      .select(
        col("tick"),
        explode(sequence(col("tick") * workload.rows, col("tick") * workload.rows + (workload.rows - 1))).as("number")
      )
      .select(
        col("number"),
        (xxhash64(col("number")) % keys).as("key"),
        timestamp_seconds(col("tick") * 60 + col("number") % 60).as("time")
      )
  )
}
