// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID

import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.LogLayout
import sparkdstl.testing.FaultyFileSystem

import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, LoggedBatches, Operator}

/** Files that only one driver may create: a driver that finds another driver's file fails with that driver's run and host. */
class ConflictsSuite extends ComparisonSuite {
  private val operator = Operator.totals

  override protected def configuration: Map[String, String] = Map(
    "spark.hadoop." + FaultyFileSystem.entry._1 -> FaultyFileSystem.entry._2,
    "spark.hadoop." + FaultyFileSystem.LostReplyRatio -> "1.0",
    "spark.hadoop." + FaultyFileSystem.Paths -> ".*/(offsets|commits)/[0-9]+|.*/metadata",
    LogOptions.Prefix + "upload.nextAttemptDelay" -> "1ms"
  )

  test(
    "a query whose every reply to offsets, commits and metadata is lost continues: the files that it finds are its own"
  ) {
    val expected = expectedOf(operator)
    val at = fresh("lost")
    val playing = new Playing(operator, ours, at, Some(s"faulty://$at"))
    assert(playing.restartingAfter(2, batches) == expected)
    assertInLog(at, expected.batches.keySet)
  }

  for (
    (what, epoch) <- Seq[(String, Seq[Long] => Long)](
      "offsets that another driver has written stop the query with an error that names the other's run and host" ->
        (_.max + 1),
      "a query never names its own run as the other one, even if its claim is the newest" -> (_.max - 1)
    )
  ) test(what) {
    val at = fresh("begun")
    val playing = new Playing(operator, ours, at)
    val query = playing.start()
    try {
      playing.feed(query, batches.head)
      val own = LoggedBatches.index(at, 0).get.writer.run
      // Another driver claims its epoch and begins the next batch, with its own offsets.
      val other = UUID.randomUUID()
      claimAsAnother(at, other, "other.example", epoch)
      Files.writeString(at.resolve("offsets/1"), Files.readString(at.resolve("offsets/0")))
      val error = failure(playing.feed(query, batches(1))).linesIterator.find(_.contains("[DSTL_FENCED]")).get
      assert(error.contains(other.toString) && error.contains("other.example"), error)
      assert(!error.split("\\[DSTL_FENCED\\]").last.contains(own.toString), error)
      assert(!Files.exists(at.resolve("commits/1")))
    } finally query.stop()
  }

  /** Claims an epoch as another driver does at its start: with the highest epoch's content and its own name. */
  private def claimAsAnother(at: LocalPath, run: UUID, host: String, epoch: Seq[Long] => Long): Unit = {
    val epochs = files(at.resolve("dstl/epochs")).flatMap(LogLayout.parseEpoch)
    if (epochs.isEmpty) throw new FileNotFoundException(s"$at claims no epoch")
    val own = Files.readString(at.resolve(s"dstl/epochs/${epochs.max}"), UTF_8)
    val ownRun = LoggedBatches.index(at, 0).get.writer
    val others = own.replace(ownRun.run.toString, run.toString).replace(ownRun.host, host)
    assert(others != own, own)
    Files.writeString(at.resolve(s"dstl/epochs/${epoch(epochs)}"), others): Unit
  }
}
