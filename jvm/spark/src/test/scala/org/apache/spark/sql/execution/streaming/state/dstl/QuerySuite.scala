package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Files, Path => LocalPath}

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.LocalFiles

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, StreamingQueryException}

/** Runs real queries in this process, each test with a new Spark and a directory that is emptied afterwards. */
abstract class QuerySuite extends AnyFunSuite with BeforeAndAfterEach {
  protected var spark: SparkSession = _
  protected var directory: LocalPath = _

  protected def master: String = "local[2]"

  protected def provider: String = classOf[DstlStateStoreProvider].getName

  /** SQL configurations of each test's session. */
  protected def configuration: Map[String, String] = Map(
    "spark.sql.streaming.stateStore.providerClass" -> provider,
    "spark.sql.streaming.checkpointFileManagerClass" -> classOf[DstlCheckpointFileManager].getName
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
    val builder = SparkSession.builder().master(master).appName(suiteName)
      .config("spark.ui.enabled", "false")
      .config("spark.driver.host", "localhost")
      .config("spark.sql.shuffle.partitions", "3")
      .config("spark.sql.streaming.metricsEnabled", "false")
      .config("spark.sql.session.timeZone", "UTC")
      .config("spark.sql.warehouse.dir", directory.resolve("warehouse").toString)
      .config("spark.sql.streaming.minBatchesToRetain", "100")
    (configuration ++ more).foreach { case (key, value) => builder.config(key, value) }
    spark = builder.getOrCreate()
  }

  protected def stopSpark(): Unit = {
    spark.streams.active.foreach(_.stop())
    spark.stop()
    StateStore.stop()
  }

  protected def checkpoint: LocalPath = directory.resolve("checkpoint")

  protected def option(key: String): String = LogOptions.Prefix + key

  /** Starts `result` into the memory table `name`. */
  protected def start(
      result: DataFrame,
      name: String,
      mode: OutputMode = OutputMode.Complete(),
      at: String = checkpoint.toString
  )
      : StreamingQuery =
    result.writeStream.format("memory").queryName(name).outputMode(mode).option("checkpointLocation", at).start()

  protected def rows(table: String): Set[String] = spark.table(table).collect().map(_.toString).toSet

  /** All files below the checkpoint, as paths relative to it. */
  protected def files(below: LocalPath = checkpoint): Seq[String] = LocalFiles.below(below)

  /** The messages of an error and all its causes. */
  protected def messages(error: Throwable): String =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(30).map(e =>
      s"${e.getClass.getName}: ${e.getMessage}"
    )
      .mkString("\n")

  protected def failure(query: => StreamingQuery): Throwable =
    intercept[Exception] {
      val running = query
      try running.processAllAvailable()
      finally running.stop()
    } match {
      case e: StreamingQueryException => e
      case e => e
    }
}
