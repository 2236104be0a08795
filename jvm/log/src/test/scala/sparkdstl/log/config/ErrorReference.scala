// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

/** A row of `docs/errors.md`: an error condition, when it arises, what it means and what an operator does. */
final private[config] case class DocumentedError(condition: String, when: String, meaning: String, action: String)

/** Every error condition that the main code has, as operators look it up. */
private[config] object ErrorReference {
  private val Start = "start"
  private val Batch = "batch"
  private val Read = "read"

  val all: Seq[DocumentedError] = Seq(
    DocumentedError(
      "DSTL_UNKNOWN_OPTION",
      Start,
      "An option is misspelt.",
      "Correct it; the error names the nearest key."
    ),
    DocumentedError(
      "DSTL_INVALID_OPTION",
      Start,
      "An option has a value that is not allowed, or that differs from the start's: it was set in `foreachBatch`.",
      "Correct it, as the error says."
    ),
    DocumentedError(
      "DSTL_UNSUPPORTED_SPARK",
      Start,
      "The jar is for another minor release of Spark, or Spark 3.5 meets a snapshot in the log.",
      "Use the jar of your Spark, or a later Spark " +
        "([cookbook](cookbook.md#the-jar-is-for-another-spark))."
    ),
    DocumentedError(
      "DSTL_UNUSABLE_CHECKPOINT",
      Start,
      "The run could not be claimed in `dstl/epochs/`.",
      "Check the storage, and the permission to list, read and write there."
    ),
    DocumentedError(
      "DSTL_NOT_EXCLUSIVE",
      Start,
      "Storage does not create objects exclusively, and `storage.requireExclusiveCreate` is set.",
      "Use other storage, or unset the option and run one driver only."
    ),
    DocumentedError(
      "DSTL_FOREIGN_BASE_PATH",
      Start,
      "`basePath` belongs to another query, or to the checkpoint that this one is a copy of.",
      "Give each checkpoint a directory ([cookbook](cookbook.md#a-copy-of-a-checkpoint-does-not-start))."
    ),
    DocumentedError(
      "DSTL_UNUSABLE_BASE_PATH",
      Start,
      "`basePath` cannot be created, read or written.",
      "Check path and permissions ([cookbook](cookbook.md#the-logs-storage-cannot-be-used))."
    ),
    DocumentedError(
      "DSTL_FENCED",
      Batch,
      "Another driver has begun or committed this batch or a later one. Nothing of this driver's batch counts.",
      "Stop one of the two ([cookbook](cookbook.md#two-drivers-run-on-one-checkpoint))."
    ),
    DocumentedError(
      "DSTL_WRITE_FAILED",
      Batch,
      "A file was not written.",
      "Check storage and permissions; restart."
    ),
    DocumentedError(
      "DSTL_COMMIT_UNKNOWN",
      Batch,
      "The outcome of a write is unknown: storage did not answer within `commit.timeout`.",
      "Check the storage; restart. The query continues from what is there, and nothing counts twice."
    ),
    DocumentedError(
      "DSTL_RUN_ENDED",
      Batch,
      "The run commits no more batches: it has ended, or an earlier commit failed or is unknown.",
      "Restart."
    ),
    DocumentedError(
      "DSTL_LOST_CHANGES",
      Batch,
      "An executor died, or an upload failed, before large changes were durable. The error names the stores.",
      "Restart. If it recurs, raise `inline.maxSegmentSize`: small changes survive an executor's death."
    ),
    DocumentedError(
      "DSTL_COMMIT_TIMEOUT",
      Batch,
      "Changes were not durable after `commit.timeout`. The error names the stores.",
      "Check storage and executors; restart."
    ),
    DocumentedError(
      "DSTL_REQUEST_TIMEOUT",
      Batch,
      "Storage did not answer a request within `commit.timeout`. The error names the request and the last failure.",
      "Check the storage; restart."
    ),
    DocumentedError(
      "DSTL_READ_FAILED",
      Batch,
      "A file could not be read.",
      "Check storage and permissions; restart ([cookbook](cookbook.md#a-permission-is-missing))."
    ),
    DocumentedError(
      "DSTL_DELETION_FAILED",
      Batch,
      "A file that Spark no longer needs could not be deleted. The query stops, as with stock Spark.",
      "Check the permission to delete; restart ([cookbook](cookbook.md#a-permission-is-missing))."
    ),
    DocumentedError(
      "DSTL_SEAL_REFUSED",
      Batch,
      "The driver rejected a task's changes: a late attempt, or local state that was not committed. " +
        "Spark retries the latter.",
      "Nothing."
    ),
    DocumentedError(
      "DSTL_SEAL_UNANSWERED",
      Batch,
      "The driver did not answer a task for `commit.timeout`. Spark retries the task.",
      "Check the driver's load and garbage collection, and the network."
    ),
    DocumentedError(
      "DSTL_SPARK_STOPPED",
      Batch,
      "The SparkContext stopped while a query or a task waited for the log.",
      "Restart if the query is to continue."
    ),
    DocumentedError(
      "DSTL_NOT_COORDINATED",
      Batch,
      "A late task of a query that has ended. Spark Connect's `stop()` does not end the jobs of `foreachBatch`.",
      "Nothing."
    ),
    DocumentedError(
      "DSTL_UNKNOWN_RUN",
      Batch,
      "Another program than the query writes its commit entry.",
      "Stop one of the two programs."
    ),
    DocumentedError(
      "DSTL_MISSING_CHECKPOINT_IDS",
      Batch,
      "A defect: the commit entry names state that no task sealed.",
      "Restart, and report it."
    ),
    DocumentedError(
      "DSTL_MATERIALIZATION_FAILED",
      Batch,
      "Snapshots of a store fail. The log grows and recovery takes longer; no state is lost.",
      "Check storage and permissions ([cookbook](cookbook.md#the-log-grows-and-restarts-take-long))."
    ),
    DocumentedError(
      "DSTL_MISSING_LOG_OBJECT",
      Read,
      "An object that a committed batch needs is gone, in the log or in `offsets`; or `basePath` was changed.",
      "Set `basePath` back, restore the object, or roll back to the batch that the error names " +
        "([cookbook](cookbook.md#the-log-is-not-where-the-query-looks-for-it))."
    ),
    DocumentedError(
      "DSTL_DAMAGED_LOG",
      Read,
      "A stored object is not what was written. The error names file and offset; nothing of it is used.",
      "Restore the object, or roll back to the batch that the error names ([cookbook](cookbook.md#a-commit-entry-is-damaged))."
    ),
    DocumentedError(
      "DSTL_MISSING_PARTITIONS",
      Read,
      "Directories of partitions are missing. Spark's state reader would omit these partitions.",
      "Start the query once ([copies](operations.md#moving-and-copying-a-checkpoint))."
    ),
    DocumentedError(
      "DSTL_OTHER_CHECKPOINT_FORMAT",
      Read,
      "The checkpoint has state store checkpoint ids, and the query or reader has none; before Spark 4.3 also the reverse.",
      "Set `spark.sql.streaming.stateStore.checkpointFormatVersion` to the format that the error names."
    ),
    DocumentedError(
      "DSTL_LOG_TOO_LARGE",
      Read,
      "An object is larger than any that the log writes.",
      "As `DSTL_DAMAGED_LOG`."
    ),
    DocumentedError(
      "DSTL_UNSUPPORTED_FORMAT",
      Read,
      "A later release wrote the object.",
      "Use that release."
    )
  )
}
