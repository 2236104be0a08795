// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.io.PrintWriter
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.streaming.StreamingQueryProgress

/** Writes results, one JSON object a line. Each line is flushed: an interrupted run leaves the lines before. */
final class Recorder(path: String) extends AutoCloseable {
  private val out = new PrintWriter(path, UTF_8)

  /**
   * @param cpuMillis processor time of this process while the batch ran
   * @param requests  made while the batch ran, by request and kind of file
   */
  def batch(
      contender: Contender,
      progress: StreamingQueryProgress,
      cpuMillis: Double,
      requests: Map[(String, String), Asked]
  ): Unit = of("batch", contender)(
    "durations" -> progress.durationMs,
    "cpuMs" -> cpuMillis,
    "requests" -> listed(requests)
  )

  /**
   * The first batch after a restart, or after a loss.
   *
   * @param millis from the start of the query, or from the batch's input, until its end
   * @param usual  of the batches before a loss
   * @param serial requests that followed one another before the first task began
   */
  def recovery(contender: Contender, millis: Long, usual: Seq[Long] = Nil, serial: Option[Seq[String]] = None): Unit =
    of("recovery", contender)("millis" -> millis, "usual" -> usual, "serial" -> serial)

  /**
   * Storage and driver after so many batches.
   *
   * @param millis   since the query's start
   * @param stored   objects below the checkpoint, by kind of file
   * @param heap     of this process after a garbage collection, in bytes
   * @param progress of the newest batch
   * @param requests since the query's start, by request and kind of file
   */
  def growth(
      contender: Contender,
      batches: Int,
      millis: Long,
      stored: Map[String, Asked],
      heap: Option[Long],
      progress: StreamingQueryProgress,
      requests: Map[(String, String), Asked]
  ): Unit = of("growth", contender)(
    "batches" -> batches,
    "millis" -> millis,
    "heap" -> heap,
    // As Spark names the size of a store's live tables.
    "liveBytes" -> progress.stateOperators.map(_.customMetrics.asScala("rocksdbSstFileSize").longValue).sum,
    "stored" -> stored.map { case (kind, asked) => kind -> Seq(asked.count, asked.bytes) },
    "requests" -> listed(requests)
  )

  /** Requests of the measured time, by contender, request and kind of file. */
  def requests(all: Map[(String, String, String), Asked]): Unit = all.foreach {
    case ((contender, request, file), asked) =>
      write(line(request, file, asked) ++ Map("kind" -> "requests", "contender" -> contender))
  }

  def write(line: Map[String, Any]): Unit = {
    out.println(Json.write(line))
    out.flush()
  }

  override def close(): Unit = out.close()

  private def of(kind: String, contender: Contender)(values: (String, Any)*): Unit =
    write(Map("kind" -> kind, "contender" -> contender.name) ++ values)

  private def listed(requests: Map[(String, String), Asked]): Seq[Map[String, Any]] =
    requests.map { case ((request, file), asked) => line(request, file, asked) }.toSeq

  private def line(request: String, file: String, asked: Asked): Map[String, Any] =
    Map("request" -> request, "file" -> file, "count" -> asked.count, "bytes" -> asked.bytes)
}
