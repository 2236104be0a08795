// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.dstl.StateStores
import org.apache.spark.sql.streaming.StreamingQueryProgress

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
      // Threads of RocksDB that log while the JVM ends crash it.
      StateStores.close()
    }
  }

  /** A session with a contender's way to keep state. */
  def of(spec: QuerySpec, contender: Contender, spark: SparkSession): SparkSession = {
    val session = spark.newSession()
    (spec.confs ++ contender.configuration).foreach { case (key, value) => session.conf.set(key, value) }
    session.conf.set("spark.sql.shuffle.partitions", spec.partitions.toLong)
    session
  }
}

/**
 * A contender's query over generated input, which runs batch by batch.
 *
 * @param session of the contender
 * @param offered input that the source has at the start: of batches before a restart, and of the first one after it
 * @param suffix  of the checkpoint's name, which begins with that of the contender
 * @param isLocal whether the checkpoint is on a local disk, by Spark's own file system
 */
final class BenchedQuery(
    spec: QuerySpec,
    contender: Contender,
    session: SparkSession,
    offered: Seq[Seq[Long]] = Nil,
    suffix: String = "",
    isLocal: Boolean = false
) {
  private val ticks = MemoryStream[Long](Encoders.scalaLong, session)
  offered.foreach(ticks.addData(_))
  private val query = Workload.over(ticks, spec.query).writeStream.format("noop").outputMode(spec.query.outputMode)
    .option(
      "checkpointLocation",
      (if (isLocal) "" else s"${DelayedFileSystem.Scheme}://") + s"${spec.root}/${contender.name}$suffix"
    )
    .start()

  /** Runs a batch with that input; returns its progress. */
  def batch(input: Seq[Long]): StreamingQueryProgress = {
    ticks.addData(input): Unit
    await()
  }

  /** Waits until all input is processed; returns the progress of the newest batch. */
  def await(): StreamingQueryProgress = {
    query.processAllAvailable()
    query.recentProgress.filter(_.numInputRows > 0).last
  }

  def stop(): Unit = query.stop()
}
