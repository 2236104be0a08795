// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.util.Using

import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.{CommitEntry, CommittedSegment, FormatSamples}

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{CheckpointFiles, ProcessResources}

class CheckpointDirectorySuite extends AnyFunSuite {
  test("executors name a checkpoint as its driver does, also one at the root of a bucket") {
    val resources = new ProcessResources(null)
    try
      for (root <- Seq("file:/", "file:/clicks", "file:/state/2024/06", "file:/two\nlines")) {
        val at = new Path(new Path(root), "state/0/1")
        val store = CheckpointDirectory.storeAt(at, new Configuration, resources, null).get
        assert(store.checkpoint.root.toString == new Path(new Path(root), "commits").getParent.toString)
        assert(store.directory == "0/1")
      }
    finally resources.close()
  }

  test("Spark gets its lines of a commit entry of any size, without the guard") {
    val resources = new ProcessResources(null)
    val root = Files.createTempDirectory("entries")
    try {
      val commits = Files.createDirectories(root.resolve("commits"))
      val handler = CheckpointDirectory.handler(new Path(commits.toString), new Configuration, resources, None, null)
      val lines = "v1\n{\"nextBatchWatermarkMs\":0}"
      for ((length, batch) <- Seq(10, CheckpointFiles.Limit + 1).zip(Seq(7L, 8L))) {
        val changes = CommittedSegment(FormatSamples.key(), 1, Vector(Left(new Array[Byte](length))))
        val entry =
          CommitEntry.encode(
            lines.getBytes(UTF_8),
            batch,
            FormatSamples.link,
            FormatSamples.writer,
            None,
            Vector(changes)
          )
        Files.write(commits.resolve(batch.toString), entry.payload.toArray)
        val read = Using.resource(handler.open(new Path(commits.toString, batch.toString)))(_.readAllBytes())
        assert(new String(read, UTF_8) == lines)
      }
    } finally {
      resources.close()
      FileUtils.deleteDirectory(root.toFile)
    }
  }
}
