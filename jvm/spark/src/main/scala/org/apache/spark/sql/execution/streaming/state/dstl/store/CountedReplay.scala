package org.apache.spark.sql.execution.streaming.state.dstl.store

import sparkdstl.log.read.ReplayMetrics

import org.apache.spark.sql.execution.streaming.state.dstl.files.ReplayCounters

/** Counts the records that come to a store while it is loaded: nothing but the replay of changelogs changes it then. */
private[store] final class CountedReplay {

  // Used by the task's thread alone.
  private var replays = false
  private var records = 0L

  /** Runs `load`, and tells what it has replayed, also if it fails: that was replayed. */
  def during[T](metrics: ReplayMetrics)(load: => T): T = {
    replays = true
    records = 0
    try load
    finally {
      replays = false
      ReplayCounters.current.records += records
      metrics.replayed(records)
    }
  }

  /** To be called with each change of the store, by whomever it comes. */
  def changing(): Unit = if (replays) records += 1
}
