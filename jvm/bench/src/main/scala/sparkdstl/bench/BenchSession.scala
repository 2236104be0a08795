// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.streaming.StreamingQuery

/** Spark, as processes of the benchmark use it. */
object BenchSession {

  /**
   * Runs with a session, and a recorder of what is measured; both are closed afterwards.
   *
   * @param confs
   *   further configurations of the application
   */
  def use(spec: QuerySpec, confs: Map[String, String] = Map.empty)(run: (SparkSession, Recorder) => Unit): Unit = {
    DelayedFileSystem.setRoot(spec.root)
    val spark = SparkSession.builder()
      .config(confs)
      .config("spark.hadoop." + DelayedFileSystem.entry._1, DelayedFileSystem.entry._2)
      .config("spark.sql.shuffle.partitions", spec.partitions.toLong)
      // Batches without input, which only move the watermark, would come between.
      .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
      .config("spark.sql.streaming.metricsEnabled", "false")
      // Milliseconds between two looks for input of a contender that waits for its turn.
      .config("spark.sql.streaming.pollingDelay", "50")
      .config("spark.sql.session.timeZone", "UTC")
      .getOrCreate()
    val recorder = new Recorder(spec.output)
    try run(spark, recorder)
    finally {
      recorder.close()
      spark.stop()
    }
  }

  /** A session with a contender's way to keep state. */
  def of(spec: QuerySpec, contender: Contender, spark: SparkSession): SparkSession = {
    val session = spark.newSession()
    (spec.confs ++ contender.configuration).foreach { case (key, value) => session.conf.set(key, value) }
    session.conf.set("spark.sql.shuffle.partitions", spec.partitions.toLong)
    session
  }

  /** Starts a contender's query, whose checkpoint is on delayed storage unless `isLocal`. */
  def start(
      spec: QuerySpec,
      contender: Contender,
      result: DataFrame,
      isLocal: Boolean = false
  ): StreamingQuery = {
    val scheme = if (isLocal) "" else s"${DelayedFileSystem.Scheme}://"
    result.writeStream.format("noop").outputMode(spec.query.outputMode)
      .option("checkpointLocation", s"$scheme${spec.root}/${contender.name}").start()
  }
}
