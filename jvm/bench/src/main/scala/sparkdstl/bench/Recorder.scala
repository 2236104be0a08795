package sparkdstl.bench

import java.io.PrintWriter
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.LongAdder

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerTaskEnd}
import org.apache.spark.sql.streaming.StreamingQueryProgress

/** Writes what was measured, one JSON object a line, flushed line by line so that an interrupted run leaves what it had. */
final class Recorder(path: String) extends AutoCloseable {
  import Recorder._

  private val json = new ObjectMapper
  private val out = new PrintWriter(path, UTF_8)

  /**
   * @param requests made while the batch ran, by request and kind of file
   * @param paths    of these requests, if they were traced
   */
  def batch(
      contender: Contender,
      round: Int,
      progress: StreamingQueryProgress,
      requests: Map[(String, String), Asked],
      paths: Seq[String]
  ): Unit = {
    val line = json.createObjectNode()
    line.put("kind", "batch").put("contender", contender.name).put("round", round)
    line.put("batch", progress.batchId).put("rows", progress.numInputRows)
    val durations = line.putObject("durations")
    progress.durationMs.asScala.foreach { case (name, millis) => durations.put(name, millis) }
    val metrics = line.putObject("metrics")
    for {
      operator <- progress.stateOperators
      (name, value) <- operator.customMetrics.asScala if name.startsWith("dstl")
    } metrics.put(name, math.max(value, metrics.path(name).asLong))
    val asked = line.putArray("requests")
    requests.foreach { case ((request, file), of) => asked.add(requestsNode(request, file, of)) }
    if (paths.nonEmpty) paths.foreach(line.withArray("/paths").add(_))
    write(line.toString)
  }

  /**
   * The first batch after a restart, or after a loss.
   *
   * @param millis from the start of the query, or from when the batch had input, until it has ended
   * @param usual  of the batches before a loss
   */
  def recovery(contender: Contender, millis: Long, progress: StreamingQueryProgress, usual: Seq[Long] = Nil): Unit = {
    val line = json.createObjectNode().put("kind", "recovery").put("contender", contender.name)
    line.put("millis", millis).put("batch", progress.batchId)
    val before = line.putArray("usual")
    usual.foreach(before.add(_): Unit)
    val durations = line.putObject("durations")
    progress.durationMs.asScala.foreach { case (name, took) => durations.put(name, took) }
    write(line.toString)
  }

  /**
   * What there is after so many batches.
   *
   * @param millis   since the query's start
   * @param stored   objects below the checkpoint, by kind of file
   * @param heap     what this process holds once its garbage is collected, in bytes
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
  ): Unit = {
    val line = json.createObjectNode().put("kind", "growth").put("contender", contender.name)
    line.put("batches", batches).put("millis", millis)
    heap.foreach(line.put("heap", _))
    line.put("liveRows", progress.stateOperators.map(_.numRowsTotal).sum)
    line.put("liveBytes", progress.stateOperators.map(_.customMetrics.asScala(SstBytes).longValue).sum)
    val objects = line.putObject("stored")
    stored.foreach { case (kind, of) => objects.putArray(kind).add(of.count).add(of.bytes) }
    val asked = line.putArray("requests")
    requests.foreach { case ((request, file), of) => asked.add(requestsNode(request, file, of)) }
    write(line.toString)
  }

  /** Requests of one kind by one contender during the counted rounds. */
  def requests(contender: String, request: String, file: String, asked: Asked): Unit =
    write(requestsNode(request, file, asked).put("kind", "requests").put("contender", contender).toString)

  def taskCpu(contender: Contender, nanos: Long): Unit =
    write(json.createObjectNode().put("kind", "cpu").put("contender", contender.name).put("taskNanos", nanos).toString)

  def peakInFlight(contender: Contender, bytes: Long): Unit =
    write(json.createObjectNode().put("kind", "memory").put("contender", contender.name).put("bytes", bytes).toString)

  override def close(): Unit = out.close()

  private def requestsNode(request: String, file: String, asked: Asked): ObjectNode = json.createObjectNode()
    .put("request", request).put("file", file).put("count", asked.count).put("bytes", asked.bytes)

  private def write(line: String): Unit = {
    out.println(line)
    out.flush()
  }
}

private object Recorder {

  /** As Spark names the size of a store's live tables. */
  val SstBytes = "rocksdbSstFileSize"
}

/** Adds up the CPU time of tasks by the run of the query that they belong to, from a batch on. */
final class TaskCpu(firstBatch: Long) extends SparkListener {
  private val runOfStage = new ConcurrentHashMap[Int, String]
  private val nanos = new ConcurrentHashMap[String, LongAdder]

  def of(run: String): Long = Option(nanos.get(run)).fold(0L)(_.sum)

  override def onJobStart(job: SparkListenerJobStart): Unit =
    for {
      properties <- Option(job.properties)
      run <- Option(properties.getProperty("spark.jobGroup.id"))
      batch <- Option(properties.getProperty("streaming.sql.batchId")) if batch.toLong >= firstBatch
    } job.stageIds.foreach(runOfStage.put(_, run))

  override def onTaskEnd(task: SparkListenerTaskEnd): Unit =
    for {
      run <- Option(runOfStage.get(task.stageId))
      metrics <- Option(task.taskMetrics)
    } nanos.computeIfAbsent(run, _ => new LongAdder).add(metrics.executorCpuTime)
}
