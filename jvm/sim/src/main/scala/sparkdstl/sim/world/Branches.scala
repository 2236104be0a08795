// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.world

import sparkdstl.log.transport.{FromDriver, ToDriver}

/** Branches of the protocol that worlds must reach. Its answers, errors, log lines and metrics show them. */
object Branches {

  /** The branches by name, with descriptions. */
  val all: Vector[(String, String)] = Vector(
    "seal-accepted" -> "the driver takes a seal",
    "seal-over-budget" -> "the driver has no memory for a seal's inline bytes",
    "seal-of-a-closed-batch" -> "a seal comes after its batch is closed",
    "seal-of-a-stale-state" -> "a seal's changes are based on a state that was not committed",
    "seal-of-a-withdrawn-attempt" -> "a seal comes after its withdrawal",
    "seal-lacks-files" -> "a snapshot that is part of a commit names files that were released",
    "offsets-overlap-tasks" -> "a batch's tasks run while its offsets are written",
    "seal-of-an-unplanned-batch" -> "a seal's batch is not planned: a write of its plan has failed",
    "run-superseded" -> "an executor sends a message to a replaced run",
    "withdrawn" -> "an attempt is withdrawn before its batch is closed",
    "withdrawal-comes-late" -> "an attempt is withdrawn that may be committed",
    "upload-unwanted" -> "an upload is reported that no batch names",
    "executor-asked-to-flush" -> "the barrier requests a flush from an executor",
    "loser-drops-its-state" -> "an attempt that lost drops its local state",
    "dropped-state-is-loaded-again" -> "a local state that was dropped is loaded from storage",
    "carried-snapshot-taken" -> "a seal's snapshot is taken",
    "carried-snapshot-finds-no-room" -> "a seal's snapshot waits for a later entry",
    "carried-snapshot-lacks-files" -> "a seal's snapshot names files that were released",
    "carried-snapshot-is-given-up" -> "the task whose seal carries a snapshot is given up",
    "snapshot-abandoned" -> "the local state of a snapshot under way is replaced",
    "snapshot-is-uploaded-again" -> "the upload of a snapshot has failed",
    "snapshot-is-part-of-a-commit-because-it-is-overdue" -> "earlier runs ended without a snapshot",
    "snapshot-part-of-a-commit-names-earlier-files" -> "such a snapshot consists of files that are in the log",
    "snapshot-loaded-from-a-later-entry" -> "a store is loaded from a snapshot in a later entry",
    "snapshot-file-is-on-the-local-disk" -> "a file of a snapshot is not fetched",
    "snapshot-skipped" -> "a snapshot cannot be read, and an earlier one replaces it",
    "plain-snapshot-loaded" -> "a store is loaded from a snapshot that is a file",
    "plain-files-deleted" -> "plain files of stock Spark are deleted",
    "checkpoint-is-taken-over-from-stock" -> "stock Spark has written the first batches",
    "create-finds-its-own-entry" -> "the reply to a creation was lost",
    "create-finds-another-entry" -> "two drivers create one entry",
    "run-claims-again" -> "another run commits between a run's two lists",
    "fence-outlives-retention" -> "an entry is kept only to fence a paused run",
    "claim-of-a-run-that-was-killed-stays" -> "a run has not marked its claim as ended",
    "pause-outlives-retention" -> "a paused run resumes after others have committed more batches than Spark retains",
    "rollback-while-the-application-lives" -> "a user rolls back, and the application begins another run",
    "purge-in-the-order-of-a-listing" -> "a tool purges all entries, not in their order",
    "batch-pinned" -> "a reader pins a batch",
    "pin-comes-too-late" -> "Spark purges a batch while a reader pins it",
    "request-hedged" -> "a request gets a second attempt because the first is slow",
    "hedge-wins" -> "the second attempt answers first",
    "request-retried" -> "a request is tried again after an error",
    "request-replaced" -> "the oldest attempt is aborted for another",
    "write-unknown" -> "the outcome of a write is unknown",
    "chunk-waits-for-memory" -> "a chunk waits for memory",
    "upload-fails" -> "an upload has failed",
    "object-discarded" -> "an executor deletes an upload that no batch names",
    "discard-fails" -> "such a deletion fails",
    "sweep-deletes" -> "a run deletes leftovers of earlier runs",
    "sweep-fails" -> "the sweep is tried again",
    "sweep-blocked" -> "the sweep waits until a damaged entry is deleted",
    "round-fails" -> "a round of retention fails",
    "newest-deleted-under-a-run" -> "the newest entry is deleted while its query runs",
    "storage-not-exclusive" -> "the trial shows that storage does not create exclusively",
    "entry-long" -> "an entry's index is longer than the first fetch",
    "release-unsent" -> "a report of released versions fails, and the next one repeats it"
  ) ++ Vector(
    "DSTL_SEAL_REFUSED",
    "DSTL_SEAL_UNANSWERED",
    "DSTL_NOT_COORDINATED",
    "DSTL_READ_FAILED",
    "DSTL_REQUEST_TIMEOUT",
    "DSTL_DAMAGED_LOG",
    "DSTL_MISSING_LOG_OBJECT",
    "DSTL_FENCED",
    "DSTL_WRITE_FAILED",
    "DSTL_COMMIT_UNKNOWN",
    "DSTL_RUN_ENDED"
  ).map(condition => s"task fails with $condition" -> "an error that a task ends with") ++ Vector(
    "DSTL_LOST_CHANGES",
    "DSTL_COMMIT_TIMEOUT",
    "DSTL_COMMIT_UNKNOWN",
    "DSTL_WRITE_FAILED",
    "DSTL_FENCED",
    "DSTL_RUN_ENDED",
    "DSTL_READ_FAILED",
    "DSTL_REQUEST_TIMEOUT",
    "DSTL_DAMAGED_LOG",
    "DSTL_UNUSABLE_CHECKPOINT"
  ).map(condition => s"run ends with $condition" -> "an error that a run ends with")

  /** Branches that at most one world in thirty reaches. */
  val rare: Set[String] = Set(
    FaultKind.PurgeAllCommits.toString,
    "seal-of-a-stale-state",
    "seal-of-a-withdrawn-attempt",
    "seal-lacks-files",
    "withdrawal-comes-late",
    "carried-snapshot-is-given-up",
    "carried-snapshot-finds-no-room",
    "snapshot-is-uploaded-again",
    "purge-in-the-order-of-a-listing",
    "pin-comes-too-late",
    "request-replaced",
    "discard-fails",
    "sweep-blocked",
    "round-fails",
    "release-unsent",
    "task fails with DSTL_SEAL_UNANSWERED",
    "task fails with DSTL_READ_FAILED",
    "task fails with DSTL_REQUEST_TIMEOUT",
    "task fails with DSTL_MISSING_LOG_OBJECT",
    "task fails with DSTL_FENCED",
    "task fails with DSTL_WRITE_FAILED",
    "task fails with DSTL_COMMIT_UNKNOWN",
    "task fails with DSTL_RUN_ENDED",
    "run ends with DSTL_COMMIT_TIMEOUT",
    "run ends with DSTL_WRITE_FAILED",
    "run ends with DSTL_RUN_ENDED",
    "run ends with DSTL_READ_FAILED"
  )

  /** Parts of log lines and the branches that they show. */
  private[world] val ofLines: Vector[(String, String)] = Vector(
    "empty directories of earlier runs" -> "sweep-deletes",
    "Could not delete uncommitted files of earlier runs in" -> "sweep-fails",
    "until the entry of batch" -> "sweep-blocked",
    "a later round tries again" -> "round-fails",
    "was deleted while its query is running" -> "newest-deleted-under-a-run",
    "does not create objects exclusively" -> "storage-not-exclusive",
    "of them aborted" -> "request-replaced",
    "the next message repeats it" -> "release-unsent"
  )

  /** Suffixes of metric names and the branches that a value above 0 shows. */
  val ofMetrics: Vector[(String, String)] = Vector(
    ".hedges" -> "request-hedged",
    ".hedgesWon" -> "hedge-wins",
    ".retries" -> "request-retried",
    ".unknown" -> "write-unknown",
    "uploads.blockedMs" -> "chunk-waits-for-memory",
    "uploads.failed" -> "upload-fails",
    "uploads.discardedObjects" -> "object-discarded",
    "uploads.discardFailures" -> "discard-fails"
  )

  /** The branch that the driver's answer to a message shows. */
  def of(message: ToDriver, answer: FromDriver): Option[String] = (message, answer) match {
    case (_: ToDriver.Seal, _: FromDriver.Accepted) => Some("seal-accepted")
    case (_: ToDriver.Seal, FromDriver.OverBudget) => Some("seal-over-budget")
    case (_: ToDriver.Seal, FromDriver.Refused(reason, stale)) =>
      if (stale.nonEmpty) Some("seal-of-a-stale-state")
      else if (reason.contains("withdrawn")) Some("seal-of-a-withdrawn-attempt")
      else if (reason.contains("is closed")) Some("seal-of-a-closed-batch")
      else if (reason.contains("data files")) Some("seal-lacks-files")
      else None
    case (_: ToDriver.Seal, _: FromDriver.NotPlanned) => Some("seal-of-an-unplanned-batch")
    case (_, FromDriver.Superseded) => Some("run-superseded")
    case (_: ToDriver.Withdraw, FromDriver.Withdrawal(late)) =>
      Some(if (late) "withdrawal-comes-late" else "withdrawn")
    case (_: ToDriver.Uploaded, _: FromDriver.Unwanted) => Some("upload-unwanted")
    case _ => None
  }
}
