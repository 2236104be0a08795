package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.atomic.AtomicLong

/** What one store has done with the log since its last commit was reported: counters for the query's progress. */
private[dstl] final class StoreActivity {
  val inlineBytes = new AtomicLong
  val uploadedBytes = new AtomicLong
  val sealNanos = new AtomicLong
  val blockedNanos = new AtomicLong
  val replayedSegments = new AtomicLong
  val replayedBytes = new AtomicLong
}
