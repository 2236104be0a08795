// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.io.File
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Encoders, ForeachWriter, Row, SparkSession}
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
import org.apache.spark.sql.functions.{max => largest}
import org.apache.spark.sql.streaming.OutputMode

/**
 * Measures how long rows wait in real-time mode while Spark ends one batch and begins the next: `RealTimeBench
 * <specification.json>`. All contenders run at the same time.
 */
object RealTimeBench {

  def main(arguments: Array[String]): Unit = {
    val spec = Json.read[CellSpec](new File(arguments.head))
    BenchSession.use(spec)((spark, recorder) => new RealTimeBench(spec, spark, recorder).run())
  }
}

/** A row, with the time at which it was sent. */
final case class Sent(key: Long, nanos: Long)

private final class RealTimeBench(spec: CellSpec, spark: SparkSession, recorder: Recorder) {
  private val BatchSeconds = 5
  private val Keys = 1000
  // Ends the process if a query no longer runs batches.
  private val SlowestBatchSeconds = 120

  private val queries = spec.contenders.map(Contender.named).map { contender =>
    val session = BenchSession.of(spec, contender, spark)
    val input = new LowLatencyMemoryStream[Sent](0, session, 1)(Encoders.product[Sent])
    val query = input.toDF().groupBy("key").agg(largest("nanos")).writeStream.outputMode(OutputMode.Update())
      .trigger(RealTimeTrigger(s"$BatchSeconds seconds"))
      .option("checkpointLocation", s"${DelayedFileSystem.Scheme}://${spec.root}/${contender.name}")
      .foreach(new WaitOfRows(contender.name)).start()
    (contender, input, query)
  }

  def run(): Unit =
    try {
      val began = until(spec.warmup)
      DelayedFileSystem.delayFromNow(spec.delays)
      // The batch under way began without delays.
      until(began + 1 + spec.rounds): Unit
      DelayedFileSystem.delayFromNow(None)
      for {
        (contender, _, _) <- queries
        (batch, nanos) <- WaitOfRows.of(contender.name) if batch > began + 1
      } recorder.write(Map(
        "kind" -> "batch",
        "contender" -> contender.name,
        "batch" -> batch,
        "pause" -> TimeUnit.NANOSECONDS.toMicros(nanos) / 1000.0
      ))
    } finally queries.foreach(_._3.stop())

  /** Sends rows until each query has begun that batch; returns the newest batch that one of them has begun. */
  private def until(batch: Long): Long = {
    val deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos((spec.rounds + spec.warmup) * SlowestBatchSeconds.toLong)
    var sent = 0L
    var reached = begun()
    while (reached.min < batch) {
      queries.foreach { case (_, input, query) =>
        query.exception.foreach(throw _)
        input.addData(Sent(sent % Keys, System.nanoTime())): Unit
      }
      if (System.nanoTime() > deadline) throw new IllegalStateException(s"no batch $batch; reached are $reached")
      sent += 1
      Thread.sleep(10)
      val before = reached
      reached = begun()
      if (reached.min > before.min) BenchMain.done(reached.min.toInt)
    }
    reached.max
  }

  /** The newest batch of each query that has processed a row; -1 before. */
  private def begun(): Seq[Long] =
    queries.map { case (contender, _, _) => WaitOfRows.of(contender.name).keys.maxOption.getOrElse(-1L) }
}

/** Keeps how long the row of each batch that waited longest has waited. Spark serializes it. */
private final class WaitOfRows(contender: String) extends ForeachWriter[Row] {
  private var batch = -1L

  override def open(partition: Long, epoch: Long): Boolean = {
    batch = epoch
    true
  }

  override def process(row: Row): Unit = WaitOfRows.longest
    .merge((contender, batch), System.nanoTime() - row.getLong(1), (one: Long, other: Long) => math.max(one, other)): Unit

  override def close(error: Throwable): Unit = ()
}

private object WaitOfRows {

  /** In nanoseconds, by contender and batch. */
  val longest = new ConcurrentHashMap[(String, Long), Long]

  def of(contender: String): Map[Long, Long] =
    longest.asScala.collect { case ((name, batch), nanos) if name == contender => batch -> nanos }.toMap
}
