// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.file.Files

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.GatedFileSystem

import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Operator, Patience}

/** Storage that answers no request for some time: the batch waits, and then completes. */
class StallSuite extends ComparisonSuite with Patience {
  private val operator = Operator.totals

  // A short timeout, so that there are hedges, which wait like the first attempt.
  override protected def configuration: Map[String, String] = Map(
    "spark.hadoop." + GatedFileSystem.entry._1 -> GatedFileSystem.entry._2,
    LogOptions.Prefix + "upload.timeout" -> "50ms"
  )

  private lazy val expected = expectedOf(operator)

  private val uploading = ours.and(LogOptions.Prefix + "inline.maxSegmentSize" -> "0")

  for (
    (what, path, contender) <- Seq(
      ("the batch's offsets are asked for", "/offsets/1$", ours),
      ("changes are uploaded while tasks run", "/dstl/data/", uploading),
      ("the commit entry is created", "/commits/1$", ours)
    )
  ) test(s"a query survives a stall that begins when $what") {
    val checkpoint = fresh("stalled")
    val playing = new Playing(operator, contender, checkpoint, Some(s"gated://$checkpoint"))
    val query = playing.start()
    try {
      playing.feed(query, batches.head)
      GatedFileSystem.shutAt(path.r)
      execution(query).withProgressLocked(playing.add(batches(1)))
      // One that stalls and at least one hedge.
      eventually(assert(GatedFileSystem.waitingRequests >= 2))
      assert(query.isActive && query.exception.isEmpty)
      assert(!Files.exists(checkpoint.resolve("commits/1")))
      GatedFileSystem.open()
      query.processAllAvailable()
    } finally {
      GatedFileSystem.open()
      query.stop()
    }
    playing.play(batches.drop(2))
    assert(playing.output == expected.batches)
    assert(operator.state.map(playing.readState) == expected.state)
    assertInLog(checkpoint, expected.batches.keySet)
  }
}
