package sparkdstl.log.worker

import java.util.concurrent.TimeUnit

import sparkdstl.log.config.LogOptions
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * When a store gets a snapshot: after an interval in which it has changed, or as soon as replaying its log would take longer than
 * loading a snapshot. One that does not change has nothing to upload; it gets a snapshot all the same when many versions have
 * passed, because until then the log of all stores is kept for its sake. Not thread-safe.
 *
 * @param minVersions from one snapshot to the next, unless the interval is over
 */
final class SnapshotSchedule(options: LogOptions, minVersions: Int, runtime: ProtocolRuntime) {
  import SnapshotSchedule._

  private val intervalNanos = TimeUnit.MILLISECONDS.toNanos(options.materializeIntervalMs)
  // Stores that begin together are not due together; but the log is kept for the one that is last.
  private var dueNanos = runtime.timer.nowNanos + (intervalNanos * (1 - Spread * runtime.random.nextDouble())).toLong
  private var snapshotBytes = 0L
  private var logBytes = 0L
  private var versions = 0L
  private var changed = false
  private var overdue = false

  /**
   * The store was loaded from a snapshot, of `bytes` in all, and a log after it.
   *
   * @param versionsSince how many versions were replayed
   * @param logBytesSince how many bytes of changelogs
   * @param runsSince how many runs have begun since the one whose entry holds the snapshot
   * @param loads how often the executor has loaded the store from storage in this run
   */
  def loaded(bytes: Long, versionsSince: Long, logBytesSince: Long, runsSince: Long, loads: Int): Unit = {
    begin(bytes, versionsSince, logBytesSince)
    overdue = versionsSince >= VersionsOfShortRuns && runsSince >= RunsWithoutSnapshot ||
      versionsSince >= minVersions && loads > 1
  }

  /**
   * Whether the snapshot of the version that is about to be committed must be part of the commit: earlier runs ended before the log
   * held one of theirs, or the store is loaded anew so often that no later seal of the same local state would carry it.
   */
  def isOverdue: Boolean = overdue

  /** Whether the version that is about to be committed is to be snapshotted. */
  def isDue: Boolean = (changed || versions >= VersionsUnchanged) &&
    (isOver || options.materializeReplayCost > 0 && versions + 1 >= minVersions && isCostly)

  /** A version was committed with a changelog of `bytes`. */
  def committed(bytes: Long, changes: Boolean): Unit = {
    versions += 1
    logBytes += bytes
    changed ||= changes
  }

  /** The version that was committed last is being snapshotted, in `bytes` in all. */
  def taken(bytes: Long): Unit = {
    // As often as configured, whatever the delays.
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

  private def isCostly: Boolean =
    (logBytes + versions * BytesOfAVersion) * options.materializeReplayCost > snapshotBytes + BytesOfARequest
}

private object SnapshotSchedule {

  /** Over which part of an interval the snapshots of stores that begin together are spread. */
  private val Spread = 0.25

  /** As many as Spark retains of batches. */
  private val VersionsUnchanged = 100L

  /** So that queries of one batch per run replay no more than this, and retain little more than they must. */
  private val RunsWithoutSnapshot = 3L
  private val VersionsOfShortRuns = 2L

  /** What a store's share of a commit entry costs to fetch, beside its changes, in bytes of changes. */
  private val BytesOfAVersion = 256L

  /** What can be loaded in the time that one request takes. */
  private val BytesOfARequest = 4L * 1024 * 1024
}
