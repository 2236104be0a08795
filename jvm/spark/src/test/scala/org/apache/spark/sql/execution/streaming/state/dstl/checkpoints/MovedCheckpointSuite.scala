// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.checkpoints

import java.nio.file.{Files, Path => LocalPath}

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.{CountingFileSystem, LocalFiles}

import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Contender, LoggedBatches, Operator}

/** Checkpoints that are moved or copied, or have their log on another storage. */
class MovedCheckpointSuite extends ComparisonSuite {
  private val operator = Operator.totals

  override protected def configuration: Map[String, String] =
    Map("spark.hadoop." + CountingFileSystem.entry._1 -> CountingFileSystem.entry._2)

  /** Plays the first batches at one place and the last at another, where `move` has brought the checkpoint. */
  private def playing(contender: Contender, move: (LocalPath, LocalPath) => Unit): (LocalPath, Playing, Playing) = {
    val (before, after) = (fresh("before"), fresh("after"))
    val first = new Playing(operator, contender, before)
    first.play(batches.take(2))
    val state = first.readState(Map.empty)
    move(before, after)
    val second = new Playing(operator, contender, after)
    // Its input is new in this process; the checkpoint records how much of it was read.
    batches.take(2).foreach(second.add)
    assert(second.readState(Map.empty) == state, "what was moved is not readable")
    second.play(batches.drop(2))
    (before, first, second)
  }

  private lazy val expected = expectedOf(operator).batches

  for (version <- Seq(1, 2)) {
    val contender = inFormat(version, ours).head

    test(s"a checkpoint that was moved to another path is read and continued, checkpoint format version $version") {
      val (_, first, second) = playing(contender, (from, to) => Files.move(from, to): Unit)
      assert(first.output ++ second.output == expected)
      assertInLog(second.checkpoint, expected.keySet)
    }

    test(s"a copy of a checkpoint and its original continue apart, checkpoint format version $version") {
      val (before, first, second) = playing(contender, LocalFiles.copy)
      assert(first.output ++ second.output == expected)
      first.play(batches.drop(2))
      assert(first.output == expected)
      assert(LoggedBatches.of(before) == expected.keySet && LoggedBatches.of(second.checkpoint) == expected.keySet)
    }
  }

  test("the log may be on another storage than the checkpoint, also after the checkpoint has moved") {
    val log = directory.resolve("log")
    val elsewhere =
      ours.and(LogOptions.Prefix + "basePath" -> s"counting://$log", LogOptions.Prefix + "inline.maxSegmentSize" -> "0")
    CountingFileSystem.reset()
    val (_, first, second) = playing(elsewhere, (from, to) => Files.move(from, to): Unit)
    assert(first.output ++ second.output == expected)
    // Epochs are claimed where commit entries are.
    assert(files(second.checkpoint).filter(file => file.startsWith("dstl") && !file.startsWith("dstl/epochs/")) == Nil)
    assertInLog(second.checkpoint, expected.keySet)
    val uploaded = files(log).filter(_.startsWith("data/"))
    assert(uploaded.size >= expected.size)
    assert(CountingFileSystem.snapshot().written.count(_.toString.contains("/data/")) == uploaded.size)
  }

  test("a copy of a checkpoint does not share its log on another storage, and continues with a copy of that log") {
    val (log, copied) = (directory.resolve("shared"), directory.resolve("copied"))
    def keptAt(place: LocalPath): Contender = ours.and(LogOptions.Prefix + "basePath" -> s"counting://$place")
    val original = new Playing(operator, keptAt(log), fresh("original"))
    original.play(batches.take(2))
    val at = fresh("copy")
    LocalFiles.copy(original.checkpoint, at)
    val error = failure(new Playing(operator, keptAt(log), at).play(batches))
    assert(error.contains("[DSTL_FOREIGN_BASE_PATH]") && error.contains(original.checkpoint.toString), error)
    LocalFiles.copy(log, copied)
    Files.delete(copied.resolve("owner.json"))
    val second = new Playing(operator, keptAt(copied), at)
    batches.take(2).foreach(second.add)
    second.play(batches.drop(2))
    assert(original.output ++ second.output == expected)
    original.play(batches.drop(2))
    assert(original.output == expected)
  }
}
