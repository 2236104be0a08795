// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.file.{Files, Path => LocalPath}

import sparkdstl.testing.GatedFileSystem

import org.apache.spark.sql.execution.streaming.state.dstl.{Patience, QuerySuite}
import org.apache.spark.sql.streaming.StreamingQuery

/** A start whose listings are made while the driver before it still writes. */
class ListingsAtStartSuite extends QuerySuite with Patience {
  override protected def configuration: Map[String, String] = super.configuration ++ Map(
    "spark.hadoop." + GatedFileSystem.entry._1 -> GatedFileSystem.entry._2,
    // A hedge of a request that the test holds would wait like it.
    option("upload.retryPolicy") -> "none"
  )

  override def afterEach(): Unit =
    try GatedFileSystem.open()
    finally super.afterEach()

  private def input: LocalPath = directory.resolve("input")

  private def begin(): StreamingQuery =
    spark.readStream.option("maxFilesPerTrigger", 1).text(input.toString).groupBy("value").count()
      .writeStream.format("memory").queryName("counts").outputMode("complete")
      .option("checkpointLocation", s"gated://$checkpoint").start()

  test("a batch that another driver begins after the source was listed, and before the claim, is run") {
    Files.createDirectories(input)
    (0 to 2).foreach(file => Files.writeString(input.resolve(s"$file.txt"), s"$file\n"))
    complete(begin())
    stopSpark()
    startSpark()
    Files.delete(checkpoint.resolve("commits/2"))
    val begun = Seq("sources/0/2" -> "entry", "offsets/2" -> "offsets")
      .map { case (file, aside) => checkpoint.resolve(file) -> directory.resolve(aside) }
    begun.foreach { case (file, aside) => Files.move(file, aside) }
    GatedFileSystem.hold("/dstl/epochs/2$".r)
    GatedFileSystem.holdAnswers("/sources/0$".r)
    val query = begin()
    eventually(assert(GatedFileSystem.waitingRequests == 2))
    begun.foreach { case (file, aside) => Files.move(aside, file) }
    GatedFileSystem.open()
    complete(query)
    assert(rows("counts") == (0 to 2).map(file => s"[$file,1]").toSet)
  }
}
