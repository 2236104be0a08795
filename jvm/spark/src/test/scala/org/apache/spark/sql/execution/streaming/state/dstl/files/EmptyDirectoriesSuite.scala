// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.LogLayout

import org.apache.spark.sql.execution.streaming.state.dstl.{Patience, QuerySuite}

/** A file system with directories. */
class EmptyDirectoriesSuite extends QuerySuite with Patience {
  private def create(epoch: Long): LocalPath =
    Files.createDirectories(checkpoint.resolve("dstl").resolve(LogLayout.dataDirectory(epoch, UUID.randomUUID())))

  test("directories that earlier runs have left empty are deleted, and a later run's is not") {
    val input = numbers()
    val earlier = create(0)
    val later = create(1000)
    val query = start(counts(input), "counts")
    feed(query, input, Seq(1))
    eventually(assert(!Files.exists(earlier)))
    query.stop()
    assert(Files.exists(later))
  }

  test(
    "a temporary checkpoint, which Spark deletes at the end of its query, does not come back with the end of the run"
  ) {
    val input = numbers()
    val query = counts(input).writeStream.format("memory").queryName("temporary").outputMode("complete").start()
    input.addData(1)
    query.processAllAvailable()
    val temporary = new Path(execution(query).resolvedCheckpointRoot)
    val files = temporary.getFileSystem(spark.sessionState.newHadoopConf())
    assert(files.exists(temporary))
    query.stop()
    // All runs have ended then.
    spark.stop()
    assert(!files.exists(temporary))
  }
}
