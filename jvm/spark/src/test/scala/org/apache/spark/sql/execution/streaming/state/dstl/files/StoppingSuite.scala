// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.GatedFileSystem

import org.apache.spark.sql.execution.streaming.state.dstl.{ComparisonSuite, Event, Operator, Patience, Warnings}

/** A query that is stopped in the middle of a batch logs no error, and continues after its restart. */
class StoppingSuite extends ComparisonSuite with Patience {
  override protected def configuration: Map[String, String] = Map(
    "spark.hadoop." + GatedFileSystem.entry._1 -> GatedFileSystem.entry._2
  )

  private val operator = Operator.totals
  private val uploading = ours.and(LogOptions.Prefix + "inline.maxSegmentSize" -> "0")

  // Each chunk waits for the memory of the one before it, so tasks wait in the middle of their seals.
  private val waiting = uploading.and(
    LogOptions.Prefix + "upload.maxInFlight" -> "1m",
    LogOptions.Prefix + "preemptivePersistThreshold" -> "64k",
    LogOptions.Prefix + "batch.persistSizeThreshold" -> "64k"
  )
  private val large = (1 to 20000).map(number => Event(s"key-$number-${number.hashCode * 31}", number, 40))

  private lazy val expected = expectedOf(operator)

  for (
    (when, path, contender, batch) <- Seq(
      ("its offsets are being written", "/offsets/1$", ours, batches(1)),
      ("its changes are being uploaded", "/dstl/data/", uploading, batches(1)),
      ("its tasks wait for memory to upload", "/dstl/data/", waiting, (large, Nil)),
      ("its commit entry is being written", "/commits/1$", ours, batches(1))
    )
  ) test(s"a query that is stopped while $when logs no error, and continues from where it was") {
    val checkpoint = fresh("stopped")
    val playing = new Playing(operator, contender, checkpoint, Some(s"gated://$checkpoint"))
    val errors = Warnings.errorsOfTheLogDuring {
      val query = playing.start()
      try {
        playing.feed(query, batches.head)
        GatedFileSystem.shutAt(path.r)
        execution(query).withProgressLocked(playing.add(batch))
        eventually(assert(GatedFileSystem.waitingRequests >= 1))
        query.stop()
        query.exception.foreach(error => fail(error))
      } finally {
        GatedFileSystem.open()
        query.stop()
      }
    }
    assert(errors == Nil)
    if (batch == batches(1)) {
      playing.catchUp()
      playing.play(batches.drop(2))
      assert(playing.output == expected.batches)
      assert(operator.state.map(playing.readState) == expected.state)
    } else {
      playing.catchUp()
      assert(playing.output(1).size == large.size)
    }
  }
}
