// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.net.URI
import java.nio.file.{Files, Paths}

import sparkdstl.testing.FaultyFileSystem

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.state.dstl.QuerySuite
import org.apache.spark.sql.streaming.StreamingQuery

/** The errors of a query with a wrong configuration. */
class ConfigurationSuite extends QuerySuite {
  private def failureWith(conf: (String, String)*): String = {
    configure(conf: _*)
    val input = numbers()
    input.addData(1 to 10)
    val error = messages(failure(start(counts(input), "failing")))
    assert(!files().exists(_.startsWith("commits/")), "a batch was committed")
    error
  }

  private def run(conf: Map[String, String], at: String, data: Seq[Int]): Unit = {
    configure(conf.toSeq: _*)
    val input = numbers()
    input.addData(data)
    complete(start(counts(input), s"run${System.nanoTime()}", at = at))
  }

  test("an unknown option fails the query at its start, naming the nearest known one") {
    val error = failureWith(option("upload.maxInflight") -> "10m")
    assert(error.contains("[DSTL_UNKNOWN_OPTION]") && error.contains(option("upload.maxInFlight")), error)
  }

  test("a query whose foreachBatch function switches the log off in its session fails before the next batch") {
    val input = numbers()
    def play(switch: SparkSession => Unit): StreamingQuery = {
      input.addData(1 to 10)
      val batches = counts(input).writeStream.outputMode("update").option("checkpointLocation", checkpoint.toString)
      batches.foreachBatch { (rows: DataFrame, _: Long) =>
        rows.collect(): Unit
        switch(rows.sparkSession)
      }.start()
    }
    val switched = play(_.conf.set(option("enabled"), "false"))
    switched.processAllAvailable()
    input.addData(1 to 10)
    val error = messages(failure(switched))
    assert(error.contains("[DSTL_INVALID_OPTION]") && error.contains(option("enabled")), error)
    assert(!files().exists(_.startsWith("offsets/1")), "a batch was begun")
    complete(play(_ => ()))
    assert(files().contains("commits/1"))
  }

  test("a base path that another query was only started with by mistake can be cleared as the error says") {
    val base = directory.resolve("log").toString
    val mistaken = directory.resolve("mistaken").toString
    // A batch without the base path, and a start with it that has no batch to run.
    run(Map.empty[String, String], mistaken, 1 to 10)
    run(Map(option("basePath") -> base), mistaken, Nil)
    assert(files(directory.resolve("log")) == Seq("owner.json"))
    val owner = new String(Files.readAllBytes(directory.resolve("log/owner.json")))
    val error = failureWith(option("basePath") -> base)
    assert(error.contains(""""query":"(.*?)"""".r.findFirstMatchIn(owner).get.group(1)), error)
    assert(error.contains("[DSTL_FOREIGN_BASE_PATH]") && error.contains("started with it by mistake"), error)
    val mark = "remove (\\S+owner\\.json)".r.findFirstMatchIn(error).get.group(1)
    Files.delete(Paths.get(new URI(mark).getPath))
    run(Map(option("basePath") -> base), directory.resolve("right").toString, 1 to 10)
    assert(files(directory.resolve("right")).exists(_.startsWith("commits/")))
  }

  test("a base path that cannot be written to fails the query at its start, naming it") {
    val file = directory.resolve("file")
    Files.write(file, Array[Byte](1))
    val error = failureWith(option("basePath") -> s"$file/log")
    assert(error.contains("[DSTL_UNUSABLE_BASE_PATH]") && error.contains(s"$file/log"), error)
  }

  test("a read-only storage for the log fails the batch, naming the object") {
    val hadoop = FaultyFileSystem.configure(spark.sparkContext.hadoopConfiguration)
    hadoop.set(FaultyFileSystem.FailRatio, "1.0")
    // Another test may have cached a file system that fails less.
    hadoop.setBoolean("fs.faulty.impl.disable.cache", true)
    configure(option("upload.nextAttemptDelay") -> "1ms", option("commit.timeout") -> "2s")
    val error = failureWith(option("basePath") -> s"faulty://$directory/log")
    assert(error.contains("[DSTL_UNUSABLE_BASE_PATH]") || error.contains("[DSTL_WRITE_FAILED]"), error)
    assert(error.contains(s"$directory/log"), error)
  }

  test("a log may lie on another path than the checkpoint, and a changed base path is an error") {
    spark.conf.set(option("inline.maxSegmentSize"), "0")
    spark.conf.set(option("basePath"), directory.resolve("log").toString)
    val input = numbers()
    input.addData(1 to 10)
    complete(start(counts(input), "first"))
    assert(files(directory.resolve("log")).exists(_.startsWith("data/")))
    spark.conf.set(option("basePath"), directory.resolve("elsewhere").toString)
    input.addData(11 to 20)
    val error = messages(failure(start(counts(input), "moved")))
    assert(error.contains("[DSTL_MISSING_LOG_OBJECT]") && error.contains(directory.resolve("log").toString), error)
    spark.conf.set(option("basePath"), directory.resolve("log").toString)
    complete(start(counts(input), "second"))
    assert(rows("second") == counted(1 to 20))
  }
}
