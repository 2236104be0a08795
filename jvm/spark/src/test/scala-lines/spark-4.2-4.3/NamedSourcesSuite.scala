// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.file.{Files, Path => LocalPath}

import org.apache.spark.sql.execution.streaming.state.dstl.QuerySuite
import org.apache.spark.sql.functions.{col, length}
import org.apache.spark.sql.streaming.StreamingQuery

/** Sources with names, which their directories in a checkpoint have too. */
class NamedSourcesSuite extends QuerySuite {
  private def input: LocalPath = Files.createDirectories(directory.resolve("input"))

  private def put(number: Int): Unit = Files.writeString(input.resolve(s"$number.txt"), "x" * number): Unit

  /** Counts lines of files by length, with a source of that name. */
  private def countLines(source: String, at: LocalPath): StreamingQuery = {
    val lines = spark.readStream.option("maxFilesPerTrigger", 1).name(source).text(input.toString)
    start(lines.groupBy(length(col("value")).as("length")).count(), "counted", at = at.toString)
  }

  private def enforceNames(): Unit =
    configure("spark.sql.streaming.queryEvolution.enableSourceEvolution" -> "true")

  test("an entry that another driver has written for a named source stops the query with an error that names it") {
    enforceNames()
    put(1)
    val query = countLines("clicks", checkpoint)
    try {
      query.processAllAvailable()
      val taken = Files.copy(checkpoint.resolve("sources/clicks/0"), checkpoint.resolve("sources/clicks/1"))
      put(2)
      val message = intercept[Exception](query.processAllAvailable()).getMessage
      assert(message.contains("[DSTL_FENCED]") && message.contains(s"it has written file:$taken"), message)
    } finally query.stop()
  }

  test("a query continues in a checkpoint that is itself in a directory named sources") {
    enforceNames()
    val at = directory.resolve("sources/clicks")
    for (number <- 1 to 2) {
      put(number)
      complete(countLines("clicks", at))
      assert(rows("counted") == (1 to number).map(length => s"[$length,1]").toSet)
      stopSpark()
      startSpark()
      enforceNames()
    }
    assert(files(at).contains("sources/clicks/1"))
  }
}
