// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import java.util.UUID
import java.util.concurrent.TimeoutException

import org.apache.hadoop.fs.Path

/**
 * Another driver runs the query. It is not a `FileAlreadyExistsException`, because Spark's metadata log replaces the message of
 * those.
 */
final class FencedException(message: String) extends DstlException(FencedException.Condition, Map.empty, message)

object FencedException {
  val Condition = "DSTL_FENCED"
}

/** The driver refuses a seal. The local state of the `stale` stores differs from the committed one. */
final class SealRefusedException(parameters: Map[String, String], message: String, val stale: Vector[String])
    extends DstlException("DSTL_SEAL_REFUSED", parameters, message)

/** Errors of the protocol, each with its condition. */
object ProtocolErrors {
  private val NamedStores = 10
  private val StopOne =
    "Two queries must not share a checkpoint: stop one of them. Nothing of this driver's batch counts."

  /** @param other run and host of the other driver, if they are known */
  def fenced(entry: Path, other: Option[(UUID, String)]): FencedException = new FencedException(
    s"Batch ${entry.getName} of $entry was committed by another driver${named(other, "run")}. $StopOne"
  )

  def begunByOther(offsets: Path, other: Option[(UUID, String)]): FencedException =
    new FencedException(
      s"Batch ${offsets.getName} was begun by another driver${named(other, "the newest other run is")}, which has written " +
        s"$offsets. $StopOne"
    )

  /** @param file an entry of a source's metadata log */
  def sourceTakenByOther(file: Path, other: Option[(UUID, String)]): FencedException =
    new FencedException(
      s"Another driver${named(other, "the newest other run is")} runs this query: it has written $file. $StopOne"
    )

  def sealRefused(attempt: Long, batch: Long, run: UUID, reason: String, stale: Vector[String]): SealRefusedException =
    new SealRefusedException(
      Map("attempt" -> attempt.toString, "batch" -> batch.toString, "run" -> run.toString, "reason" -> reason),
      s"The driver does not take the state changes of task attempt $attempt for batch $batch of run $run: $reason.",
      stale
    )

  def sealUnanswered(attempt: Long, batch: Long, timeoutMillis: Long, cause: Throwable): DstlException =
    DstlException("DSTL_SEAL_UNANSWERED", "attempt" -> attempt, "batch" -> batch, "timeoutMs" -> timeoutMillis)(
      s"The driver has not answered for $timeoutMillis ms whether it takes the state changes of task attempt $attempt " +
        s"for batch $batch: ${Causes.text(cause)}. The task fails and is run again; its changes are withdrawn. Check the " +
        "driver's load and garbage collection, and the network; raise " +
        "spark.sql.streaming.stateStore.dstl.commit.timeout if the driver may need longer.",
      cause
    )

  def materializationFailed(store: String, version: Long, attempts: Int, cause: Throwable): DstlException =
    DstlException("DSTL_MATERIALIZATION_FAILED", "store" -> store, "version" -> version, "attempts" -> attempts)(
      s"The snapshot of version $version of $store failed $attempts times in a row, at last with: ${Causes.text(cause)}. Its " +
        "log is kept, so nothing is lost, but it grows, and so does the time that recovery takes. Check the storage and the " +
        "permission to write there. spark.sql.streaming.stateStore.dstl.materialize.onFailure determines whether the query fails.",
      cause
    )

  def notCoordinated(root: String): DstlException =
    DstlException("DSTL_NOT_COORDINATED", "checkpoint" -> root)(
      s"The driver coordinates no log for $root any more: its query has ended. The task is a late attempt."
    )

  def lostSegments(batch: Long, stores: Seq[(String, String)]): DstlException =
    DstlException("DSTL_LOST_CHANGES", "batch" -> batch, "stores" -> stores.map(_._1).mkString(","))(
      s"Batch $batch cannot be committed: changes of ${stores.size} store(s) were lost before they were durable: " +
        list(stores.map { case (store, why) => s"${named(store)} ($why)" }) +
        ". Restart the query: the batch is run again from the last committed one."
    )

  def commitTimeout(batch: Long, stores: Seq[String], timeoutMillis: Long): DstlException =
    DstlException("DSTL_COMMIT_TIMEOUT", "batch" -> batch, "timeoutMs" -> timeoutMillis)(
      s"Batch $batch cannot be committed: after $timeoutMillis ms the changes of ${stores.size} store(s) are not " +
        s"durable: ${list(stores.map(named))}. Check the storage; raise " +
        "spark.sql.streaming.stateStore.dstl.commit.timeout if it stalls for longer. Restart the query: the batch is run " +
        "again from the last committed one."
    )

  def missingCheckpointIds(batch: Long, ids: Seq[String]): DstlException =
    DstlException("DSTL_MISSING_CHECKPOINT_IDS", "batch" -> batch)(
      s"Batch $batch cannot be committed: its commit entry names checkpoint ids whose changes were never sealed: " +
        s"${list(ids)}. This is a defect; please report it. Restart the query: the batch is run again."
    )

  def commitFailed(entry: Path, cause: Throwable): DstlException =
    DstlException("DSTL_WRITE_FAILED", "path" -> entry)(
      s"$entry was not written: ${Causes.text(cause)}. Check the storage and the permission to write there.",
      cause
    )

  /** The time was over before the creation of the entry began, so there is no entry and no request that may create it. */
  def commitTooLate(entry: Path, timeoutMillis: Long): DstlException = commitFailed(
    entry,
    new TimeoutException(
      s"spark.sql.streaming.stateStore.dstl.commit.timeout, $timeoutMillis ms, was over before its creation"
    )
  )

  def commitUnknown(entry: Path, timeoutMillis: Long, cause: Throwable): DstlException =
    DstlException("DSTL_COMMIT_UNKNOWN", "path" -> entry, "timeoutMs" -> timeoutMillis)(
      s"It is unknown whether $entry was written: ${Causes.text(cause)}. Check the storage, then restart the query: it " +
        "continues from what is there, and nothing is lost or counted twice. Raise " +
        s"spark.sql.streaming.stateStore.dstl.commit.timeout, which is $timeoutMillis ms, if the storage stalls for longer.",
      cause
    )

  def sparkStopped(cause: Throwable = null): DstlException =
    DstlException("DSTL_SPARK_STOPPED")(
      "The SparkContext stopped while the log waited for storage or for another process. Writes that had begun may still " +
        "take effect. Restart the query: it continues from the last committed batch.",
      cause
    )

  def unreadable(path: Path, cause: Throwable): DstlException = cause match {
    case named: DstlException => named
    case _ => DstlException("DSTL_READ_FAILED", "path" -> path)(
        s"$path could not be read: ${Causes.text(cause)}. Check the storage and the permission to read there.",
        cause
      )
  }

  /** @param partitions as `<operator>/<partition>` */
  def missingPartitions(root: Path, partitions: Seq[String], cause: Throwable = null): DstlException =
    DstlException("DSTL_MISSING_PARTITIONS", "checkpoint" -> root, "partitions" -> partitions.mkString(","))(
      s"$root/state lacks the directories of ${partitions.size} partition(s) whose state is in the log: ${list(partitions)}. " +
        "Spark's state reader finds partitions by their directories and would omit these; a tool that copies objects drops " +
        "empty directories. " + Option(cause).fold("")(e => s"They could not be created: ${Causes.text(e)}. ") +
        "Create them, start the query once, or read with permission to write and with " +
        "spark.sql.streaming.checkpointFileManagerClass set to the log's file manager: both create them.",
      cause
    )

  def notDeleted(path: Path, cause: Throwable): DstlException = cause match {
    case named: DstlException => named
    case _ => DstlException("DSTL_DELETION_FAILED", "path" -> path)(
        s"$path may not have been deleted: ${Causes.text(cause)}. Check the storage and the permission to delete " +
          "there, then restart the query: nothing is lost.",
        cause
      )
  }

  /** @param mark the file that marks the directory as the owner's */
  def foreignBasePath(base: Path, owner: String, query: String, mark: Path): DstlException =
    DstlException("DSTL_FOREIGN_BASE_PATH", "base" -> base, "owner" -> owner, "query" -> query)(
      s"The log directory $base belongs to query $owner, not to query $query. Set " +
        "spark.sql.streaming.stateStore.dstl.basePath to a directory that no other query uses. If " +
        s"query $owner was only started with it by mistake, make sure that it does not run and that there is no file in " +
        s"$base/data, remove $mark, and start again."
    )

  def copiedCheckpoint(
      base: Path,
      original: String,
      copy: String,
      owner: Path,
      unsure: Option[Throwable]
  ): DstlException =
    DstlException("DSTL_FOREIGN_BASE_PATH", "base" -> base, "owner" -> original, "checkpoint" -> copy)(
      s"The log directory $base belongs to the checkpoint at $original, and this one at $copy " +
        unsure.fold("is a copy of it")(e =>
          s"may be a copy of it (it is unknown whether that still exists: ${e.getMessage})"
        ) +
        ". Each would delete what the other needs. Copy the log directory as well, without its owner.json, and set " +
        s"spark.sql.streaming.stateStore.dstl.basePath to the copy; or remove $owner if the checkpoint at $original is " +
        "not used any more.",
      unsure.orNull
    )

  def unusableBasePath(base: Path, cause: Throwable): DstlException =
    DstlException("DSTL_UNUSABLE_BASE_PATH", "base" -> base)(
      s"The log directory $base cannot be used: ${Causes.text(cause)}. Check that it can be created and written to, or set " +
        "spark.sql.streaming.stateStore.dstl.basePath to another.",
      cause
    )

  def unusableCheckpoint(directory: Path, cause: Throwable): DstlException =
    DstlException("DSTL_UNUSABLE_CHECKPOINT", "directory" -> directory)(
      s"$directory cannot be used: ${Causes.text(cause)}. A query claims its run there before its first batch. Check the " +
        "storage, and the permission to list, read and write there.",
      cause
    )

  def notExclusive(base: Path): DstlException =
    DstlException("DSTL_NOT_EXCLUSIVE", "base" -> base)(
      s"The storage of $base does not create objects exclusively: a second create of the same name was not refused, so " +
        "two drivers could both commit a batch. Use a storage or a connector setting that can (S3A: " +
        "fs.s3a.create.conditional.enabled=true), or set " +
        "spark.sql.streaming.stateStore.dstl.storage.requireExclusiveCreate to false."
    )

  def unsupportedSpark(found: String, supported: String): DstlException =
    DstlException("DSTL_UNSUPPORTED_SPARK", "found" -> found, "supported" -> supported)(
      s"This jar of spark-dstl is for Spark $supported, but runs in Spark $found. Use the jar of this release for your " +
        s"Spark: its name contains the version, as this one's contains spark$supported. Other versions are not supported."
    )

  /** @param snapshot the path of the store's newest snapshot */
  def snapshotOfLaterSpark(snapshot: Path, found: String): DstlException =
    DstlException("DSTL_UNSUPPORTED_SPARK", "snapshot" -> snapshot, "found" -> found)(
      s"Snapshot $snapshot is in the log, written by a later Spark. Spark $found loads only snapshots in plain files, and the log " +
        "before the snapshot may be deleted. Continue with Spark 4.0 or later; the checkpoint was not changed."
    )

  def unknownRun(batch: Long): DstlException =
    DstlException("DSTL_UNKNOWN_RUN", "batch" -> batch)(
      s"Batch $batch cannot be committed: tasks have sealed state changes for another query than the " +
        "one that writes its commit entry. Two programs write to this checkpoint; stop one of them."
    )

  def runEnded(run: UUID): DstlException =
    DstlException("DSTL_RUN_ENDED", "run" -> run)(
      s"Run $run commits no more batches: the outcome of an earlier commit is unknown, or the run has ended. " +
        "Restart the query."
    )

  private def named(other: Option[(UUID, String)], as: String): String =
    other.fold("") { case (run, host) => s" ($as $run on host $host)" }

  /** The name of a store in Spark's own messages. */
  private def named(storeDirectory: String): String = storeDirectory.split('/') match {
    case Array(operator, partition) => s"operator $operator partition $partition"
    case Array(operator, partition, name) => s"operator $operator partition $partition store $name"
    case _ => storeDirectory
  }

  private def list(items: Seq[String]): String =
    items.take(NamedStores).mkString(", ") +
      (if (items.size > NamedStores) s" and ${items.size - NamedStores} more" else "")
}
