// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import java.util.concurrent.TimeUnit

import sparkdstl.log.config.LogOptions
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Decides when a store is snapshotted: after an interval in which it has changed; or after at least `minVersions`, as soon as
 * replaying its log would take longer than loading a snapshot, or has many entries: each costs a restart a request, however many
 * batches a second there are. A store without changes is snapshotted after many versions, because retention keeps the entries of
 * all stores until then. Not thread-safe.
 */
final class SnapshotSchedule(options: LogOptions, minVersions: Int, runtime: ProtocolRuntime) {
  import SnapshotSchedule._

  private val intervalNanos = TimeUnit.MILLISECONDS.toNanos(options.materializeIntervalMs)
  // Random, so that stores that begin together are not due together; retention waits for the last of them.
  private var dueNanos = runtime.timer.nowNanos + (intervalNanos * (1 - Spread * runtime.random.nextDouble())).toLong
  private val longestLog = (LongestLog * (1 - Spread * runtime.random.nextDouble())).toLong
  private var snapshotBytes = 0L
  private var logBytes = 0L
  private var versions = 0L
  private var changed = false
  private var overdue = false

  /**
   * Resets the schedule after the store was loaded from a snapshot of `bytes` and the log after it: replayed versions, their
   * changelogs' bytes, runs since the one whose entry holds the snapshot, and the executor's loads of the store in this run.
   */
  def loaded(bytes: Long, versionsSince: Long, logBytesSince: Long, runsSince: Long, loads: Int): Unit = {
    begin(bytes, versionsSince, logBytesSince)
    overdue = versionsSince >= VersionsOfShortRuns && runsSince >= RunsWithoutSnapshot ||
      versionsSince >= minVersions && loads > 1
  }

  /**
   * Whether the next version's snapshot must be part of its commit: earlier runs have ended before the log had one of their
   * snapshots, or the store is loaded so often that no later seal of the same local state would carry it.
   */
  def isOverdue: Boolean = overdue

  /** Whether the next version is to be snapshotted. */
  def isDue: Boolean = (changed || versions >= VersionsUnchanged) &&
    (isOver || options.materializeReplayCost > 0 && versions + 1 >= minVersions && (isCostly || isLong))

  /** Counts a committed version with a changelog of `bytes`. */
  def committed(bytes: Long, changes: Boolean): Unit = {
    versions += 1
    logBytes += bytes
    changed ||= changes
  }

  /** Restarts the schedule at a snapshot of `bytes` of the last committed version. */
  def taken(bytes: Long): Unit = {
    // A late snapshot does not delay later ones.
    if (isOver) dueNanos += intervalNanos * ((runtime.timer.nowNanos - dueNanos) / intervalNanos + 1)
    begin(bytes, 0, 0)
    overdue = false
  }

  private def begin(bytes: Long, versionsSince: Long, logBytesSince: Long): Unit = {
    snapshotBytes = bytes
    versions = versionsSince
    logBytes = logBytesSince
    changed = versionsSince > 0
  }

  private def isOver: Boolean = runtime.timer.nowNanos - dueNanos >= 0

  private def isLong: Boolean = changed && versions >= longestLog

  private def isCostly: Boolean =
    (logBytes + versions * BytesOfAVersion) * options.materializeReplayCost > snapshotBytes + BytesOfARequest
}

private object SnapshotSchedule {

  /**
   * Versions after which a changed store is snapshotted. With eight reads at once of 40 ms each, a restart replays twice as
   * many in two seconds: as many again are committed until the snapshot is in the log and the entries are deleted.
   */
  private val LongestLog = 200L

  /** The part of an interval, or of the longest log, over which the snapshots of stores are spread. */
  private val Spread = 0.25

  /** The number of batches that Spark retains by default. */
  private val VersionsUnchanged = 100L

  /** Limits of replay and retention for queries with one batch per run. */
  private val RunsWithoutSnapshot = 3L
  private val VersionsOfShortRuns = 2L

  /** The cost of a store's part of an index, in bytes of changes. */
  private val BytesOfAVersion = 256L

  /** The cost of a request, in bytes that are loaded in the same time. */
  private val BytesOfARequest = 4L * 1024 * 1024
}
