package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import sparkdstl.log.error.DstlException
import sparkdstl.log.format.SegmentKey

/**
 * Another driver committed the batch first. It is a `FileAlreadyExistsException` because that is what Spark's metadata log
 * takes as the sign of a second query on the same checkpoint.
 */
private[dstl] final class FencedException(message: String)
    extends FileAlreadyExistsException(s"[DSTL_FENCED] $message")

/** Every error of the Spark side, in one place, each with its condition name. */
private[dstl] object DstlErrors {
  private val NamedStores = 10

  def unsupportedSpark(found: String, supported: String): DstlException =
    new DstlException(
      "DSTL_UNSUPPORTED_SPARK",
      Map("found" -> found, "supported" -> supported),
      s"This release of spark-dstl was built for Spark $supported, but runs in Spark $found. Use Spark $supported, or " +
        "the release of spark-dstl that was built for yours."
    )

  def fenced(entry: Path, run: Option[UUID], host: Option[String]): FencedException =
    new FencedException(
      s"Batch ${entry.getName} of $entry was committed by another driver" +
        s"${run.fold("")(id => s" (run $id")}${host.fold("")(name => s" on host $name")}${run.fold("")(_ => ")")}. " +
        "Two queries must not share a checkpoint: stop one of them. Nothing of this driver's batch was published."
    )

  def foreignBasePath(base: Path, owner: String, query: String): DstlException =
    new DstlException(
      "DSTL_FOREIGN_BASE_PATH",
      Map("base" -> base.toString, "owner" -> owner, "query" -> query),
      s"The log directory $base belongs to query $owner, not to query $query. Set " +
        "spark.sql.streaming.stateStore.dstl.basePath to a directory of this query's own."
    )

  def copiedCheckpoint(
      base: Path,
      original: String,
      copy: String,
      owner: Path,
      unsure: Option[Throwable]
  ): DstlException =
    new DstlException(
      "DSTL_FOREIGN_BASE_PATH",
      Map("base" -> base.toString, "owner" -> original, "checkpoint" -> copy),
      s"The log directory $base belongs to the checkpoint at $original, and this one at $copy " +
        unsure.fold("is a copy of it")(e =>
          s"may be a copy of it (whether that is gone cannot be told: ${e.getMessage})"
        ) +
        ". Each would delete what the other needs. Copy the log directory as well, without its owner.json, and set " +
        s"spark.sql.streaming.stateStore.dstl.basePath to the copy; or remove $owner if the checkpoint at $original is " +
        "not used any more.",
      unsure.orNull
    )

  def unusableBasePath(base: Path, cause: Throwable): DstlException =
    new DstlException(
      "DSTL_UNUSABLE_BASE_PATH",
      Map("base" -> base.toString),
      s"The log directory $base cannot be used: ${cause.getMessage}. Check that it can be created and written to, or set " +
        "spark.sql.streaming.stateStore.dstl.basePath to another.",
      cause
    )

  def damagedCommitEntry(entry: Path, what: String, cause: Throwable): DstlException =
    new DstlException(
      "DSTL_DAMAGED_COMMIT_ENTRY",
      Map("entry" -> entry.toString, "damage" -> what),
      s"Commit entry $entry is damaged: $what. Restore it from a backup, or remove it and all later entries of commits/ " +
        "and offsets/ to go back to the batch before it.",
      cause
    )

  def sealRefused(key: SegmentKey, run: UUID, reason: String): DstlException =
    new DstlException(
      "DSTL_SEAL_REFUSED",
      Map("segment" -> key.relativePath, "run" -> run.toString, "reason" -> reason),
      s"The driver refused the changes of ${store(key)} version ${key.version} from run $run: $reason. " +
        "The task is a late attempt; its changes are not needed."
    )

  def lostSegments(batch: Long, keys: Seq[(SegmentKey, String)]): DstlException =
    new DstlException(
      "DSTL_LOST_CHANGES",
      Map("batch" -> batch.toString, "stores" -> keys.map(_._1.storeDirectory).mkString(",")),
      s"Batch $batch cannot be committed: changes of ${keys.size} store(s) were lost before they were durable: " +
        list(keys.map { case (key, why) => s"${store(key)} version ${key.version} ($why)" }) +
        ". Restart the query: the batch is run again from the last committed one."
    )

  def commitTimeout(batch: Long, keys: Seq[SegmentKey], timeoutMs: Long): DstlException =
    new DstlException(
      "DSTL_COMMIT_TIMEOUT",
      Map("batch" -> batch.toString, "timeoutMs" -> timeoutMs.toString),
      s"Batch $batch cannot be committed: after $timeoutMs ms the changes of ${keys.size} store(s) are not durable: " +
        list(keys.map(key => s"${store(key)} version ${key.version}")) + ". Check the storage; raise " +
        "spark.sql.streaming.stateStore.dstl.commit.timeout if it stalls for longer. Restart the query: the batch is run " +
        "again from the last committed one."
    )

  def missingCheckpointIds(batch: Long, stores: Seq[String]): DstlException =
    new DstlException(
      "DSTL_MISSING_CHECKPOINT_IDS",
      Map("batch" -> batch.toString),
      s"Batch $batch cannot be committed: its commit entry names checkpoint ids whose changes were never sealed: " +
        s"${list(stores)}. This is a defect; please report it. Restart the query: the batch is run again."
    )

  def unknownRun(batch: Long): DstlException =
    new DstlException(
      "DSTL_UNKNOWN_RUN",
      Map("batch" -> batch.toString),
      s"Batch $batch cannot be committed: its commit entry is not written by the thread of a streaming query, so its state " +
        "changes cannot be told from another run's. This is a defect; please report it."
    )

  def writeFailed(path: Path, cause: Throwable): DstlException =
    new DstlException(
      "DSTL_WRITE_FAILED",
      Map("path" -> path.toString),
      s"$path could not be written: ${cause.getMessage}. Check the storage and the permission to write there.",
      cause
    )

  def writeTimedOut(path: Path, timeoutMs: Long): DstlException =
    unanswered("DSTL_WRITE_TIMEOUT", path, timeoutMs, s"any attempt to write $path")

  def readTimedOut(path: Path, timeoutMs: Long): DstlException =
    unanswered("DSTL_READ_TIMEOUT", path, timeoutMs, s"whether $path exists")

  private def unanswered(condition: String, path: Path, timeoutMs: Long, request: String): DstlException =
    new DstlException(
      condition,
      Map("path" -> path.toString, "timeoutMs" -> timeoutMs.toString),
      s"Storage has not answered $request for $timeoutMs ms. Check the storage; raise " +
        "spark.sql.streaming.stateStore.dstl.commit.timeout if it stalls for longer. Restart the query: it goes on from " +
        "the last committed batch."
    )

  /** A store as Spark's own messages name it. */
  private def store(key: SegmentKey): String =
    s"operator ${key.operator} partition ${key.partition}${if (key.storeName.isEmpty) "" else s" store ${key.storeName}"}"

  private def list(items: Seq[String]): String =
    items.take(NamedStores).mkString(", ") +
      (if (items.size > NamedStores) s" and ${items.size - NamedStores} more" else "")
}
