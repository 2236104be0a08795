// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import sparkdstl.testing.FaultyFileSystem

import org.apache.spark.sql.execution.streaming.state.dstl.{QuerySuite, Warnings}

/** Storage without space: a query does not start, and says why, long before the deadline of its requests. */
class FullStorageSuite extends QuerySuite {
  private val full = "No space left on device"

  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + FaultyFileSystem.entry._1 -> FaultyFileSystem.entry._2,
    "spark.hadoop." + FaultyFileSystem.FailRatio -> "1.0",
    "spark.hadoop." + FaultyFileSystem.FailWords -> full,
    // Other suites of this process use file systems of that scheme.
    "spark.hadoop.fs.faulty.impl.disable.cache" -> "true",
    // The error of a deadline would be another one.
    option("commit.timeout") -> "2min"
  )

  for (
    (what, paths) <- Seq(
      "its metadata" -> ".*/metadata",
      "the claim of its run" -> ".*/dstl/epochs/.*",
      "the first offsets" -> ".*/offsets/0"
    )
  ) test(s"a query that cannot write $what fails within seconds, with the words of the file system") {
    stopSpark()
    startSpark("spark.hadoop." + FaultyFileSystem.Paths -> paths)
    val input = numbers()
    input.addData(1 to 10)
    var error = ""
    val warnings = Warnings.during {
      error = messages(failure(start(counts(input), "full", at = s"faulty://$checkpoint")))
    }
    assert(error.contains(full), error)
    assert(!error.contains("did not succeed within"), error)
    assert(warnings.exists(_.contains("It is tried again until 3 s have passed")), warnings)
  }
}
