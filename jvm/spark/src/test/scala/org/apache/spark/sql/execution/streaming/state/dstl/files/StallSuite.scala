// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.file.Files

import org.scalatest.Assertion

import sparkdstl.testing.GatedFileSystem

import org.apache.spark.sql.execution.streaming.state.dstl._
import org.apache.spark.sql.streaming.StreamingQuery

/** Storage that answers no request for some time, in the middle of a batch. */
class StallSuite extends ComparisonSuite with Patience {
  override protected def configuration: Map[String, String] = Map(
    "spark.hadoop." + GatedFileSystem.entry._1 -> GatedFileSystem.entry._2
  )

  private val operator = Operator.totals
  private val uploading = ours.and(option("inline.maxSegmentSize") -> "0")

  // Each chunk waits for the memory of the one before it, so tasks wait in the middle of their seals.
  private val waiting = uploading.and(
    option("upload.maxInFlight") -> "1m",
    option("preemptivePersistThreshold") -> "64k",
    option("batch.persistSizeThreshold") -> "64k"
  )
  private val large = (1 to 20000).map(number => Event(s"key-$number-${number.hashCode * 31}", number, 40))

  private lazy val expected = expectedOf(operator)

  private def playing(contender: Contender): Playing = {
    val checkpoint = fresh("stalled")
    new Playing(operator, contender, checkpoint, Some(s"gated://$checkpoint"))
  }

  /** Runs a batch after the first one. `act` is called once a request at this path has no answer. */
  private def stall(playing: Playing, at: String, batch: (Seq[Event], Seq[Event]))(act: StreamingQuery => Any): Unit = {
    val query = playing.start()
    try {
      playing.feed(query, batches.head)
      GatedFileSystem.shutAt(at.r)
      execution(query).withProgressLocked(playing.add(batch))
      eventually(assert(GatedFileSystem.waitingRequests >= 1))
      act(query): Unit
    } finally {
      GatedFileSystem.open()
      query.stop()
    }
  }

  private def continues(playing: Playing): Assertion = {
    playing.play(batches.drop(2))
    assert(playing.output == expected.batches)
    assert(operator.state.map(playing.readState) == expected.state)
  }

  for (
    (what, path, contender) <- Seq(
      ("the batch's offsets are asked for", "/offsets/1$", ours),
      ("changes are uploaded while tasks run", "/dstl/data/", uploading),
      ("the commit entry is created", "/commits/1$", ours)
    )
  ) test(s"a query survives a stall that begins when $what") {
    // A short timeout, so that there are hedges, which wait like the first attempt.
    val stalling = playing(contender.and(option("upload.timeout") -> "50ms"))
    stall(stalling, path, batches(1)) { query =>
      // One that stalls and at least one hedge.
      eventually(assert(GatedFileSystem.waitingRequests >= 2))
      assert(query.isActive && query.exception.isEmpty)
      assert(!Files.exists(stalling.checkpoint.resolve("commits/1")))
      GatedFileSystem.open()
      query.processAllAvailable()
    }
    continues(stalling)
    assertInLog(stalling.checkpoint, expected.batches.keySet)
  }

  for (
    (when, path, contender, batch) <- Seq(
      ("its offsets are being written", "/offsets/1$", ours, batches(1)),
      ("its changes are being uploaded", "/dstl/data/", uploading, batches(1)),
      ("its tasks wait for memory to upload", "/dstl/data/", waiting, (large, Nil)),
      ("its commit entry is being written", "/commits/1$", ours, batches(1))
    )
  ) test(s"a query that is stopped while $when logs no error, and continues from where it was") {
    val stopping = playing(contender)
    val errors = Warnings.errorsOfTheLogDuring {
      stall(stopping, path, batch) { query =>
        query.stop()
        query.exception.foreach(error => fail(error))
      }
    }
    assert(errors == Nil)
    stopping.catchUp()
    if (batch == batches(1)) continues(stopping) else assert(stopping.output(1).size == large.size)
  }
}
