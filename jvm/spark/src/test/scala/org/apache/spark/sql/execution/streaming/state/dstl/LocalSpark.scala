// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.file.{Path => LocalPath}

import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

import sparkdstl.log.config.LogOptions

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamingQueryWrapper}
import org.apache.spark.sql.streaming.StreamingQuery

/** A Spark in the tests' process, with its files in one directory. */
abstract class LocalSpark extends AnyFunSuite {

  /** Whether tests run that resemble another one. */
  protected def isWhole: Boolean = sys.env.contains("SPARK_DSTL_TEST_WHOLE")

  protected var spark: SparkSession = _
  protected var directory: LocalPath = _

  protected val providerKey = "spark.sql.streaming.stateStore.providerClass"
  protected val fileManagerKey = "spark.sql.streaming.checkpointFileManagerClass"
  protected val formatKey = "spark.sql.streaming.stateStore.checkpointFormatVersion"
  protected val changelogKey = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

  /** The key of one of the log's options. */
  protected def option(key: String): String = LogOptions.Prefix + key

  protected def master: String = "local[2]"

  /** A session with these SQL configurations. */
  protected def createSpark(configurations: Map[String, String]): SparkSession = {
    val common = Map(
      "spark.ui.enabled" -> "false",
      "spark.driver.host" -> "localhost",
      "spark.sql.streaming.metricsEnabled" -> "false",
      "spark.sql.session.timeZone" -> "UTC",
      // Each plan runs on a few rows: to compile code for it takes longer than to interpret it.
      "spark.sql.codegen.wholeStage" -> "false",
      "spark.sql.codegen.factoryMode" -> "NO_CODEGEN",
      "spark.sql.warehouse.dir" -> directory.resolve("warehouse").toString
    )
    LocalSpark.deleteWithoutProcesses()
    val builder = SparkSession.builder().master(master).appName(suiteName)
    (common ++ configurations).foreach { case (key, value) => builder.config(key, value) }
    builder.getOrCreate()
  }

  protected def execution(query: StreamingQuery): MicroBatchExecution =
    query.asInstanceOf[StreamingQueryWrapper].streamingQuery.asInstanceOf[MicroBatchExecution]

  /** Runs a query until it has processed its input, and stops it. */
  protected def complete(query: StreamingQuery): Unit =
    try query.processAllAvailable()
    finally query.stop()

  /** The messages of an error and all its causes. */
  protected def messages(error: Throwable): String =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(30)
      .map(e => s"${e.getClass.getName}: ${e.getMessage}").mkString("\n")
}

private object LocalSpark {

  /** Spark 4.1 and later start `rm` for each directory that they delete, thousands of times in all suites. */
  def deleteWithoutProcesses(): Unit =
    classOf[JavaUtils].getFields.find(_.getName == "isUnix").foreach(_.setBoolean(None.orNull, false))
}

/** Waits up to a minute for other threads. */
trait Patience extends Eventually {
  override implicit val patienceConfig: PatienceConfig = PatienceConfig(Span(60, Seconds), Span(20, Millis))
}
