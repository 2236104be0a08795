// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.nio.file.Files

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.streaming.Trigger

/** With a continuous trigger Spark writes commit entries on a thread that is not the query's. */
class ContinuousSuite extends QuerySuite with Patience {
  override protected def configuration: Map[String, String] =
    super.configuration ++ Map("spark.sql.streaming.minBatchesToRetain" -> "2")

  private def commits: Seq[Long] = {
    val directory = checkpoint.resolve("commits")
    if (!Files.exists(directory)) Nil
    else Using.resource(Files.list(directory))(_.iterator.asScala.flatMap(_.getFileName.toString.toLongOption).toVector)
  }

  test("commit entries of a continuous query are deleted, and what its start has read is forgotten") {
    val query = spark.readStream.format("rate").option("rowsPerSecond", "10").option("numPartitions", "1").load()
      .writeStream.format("noop").option("checkpointLocation", checkpoint.toString)
      .trigger(Trigger.Continuous("100 milliseconds")).start()
    try {
      eventually { assert(commits.nonEmpty && commits.max >= 10); () }
      assert(commits.size <= 6)
      assert(DstlEnvironment.get.driver.get.startOf(new Path(s"file:$checkpoint")).isEmpty)
    } finally query.stop()
  }
}
