// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import org.apache.hadoop.fs.Path

/** Errors of the log's format, storage and options, each with its condition. */
object LogErrors {

  def unknownOption(prefix: String, key: String, nearest: String): InvalidOptionException =
    new InvalidOptionException(
      "DSTL_UNKNOWN_OPTION",
      Map("key" -> s"$prefix$key", "nearest" -> s"$prefix$nearest"),
      s"Unknown option $prefix$key: the nearest one is $prefix$nearest"
    )

  def invalidOption(prefix: String, key: String, value: String, allowed: String): InvalidOptionException =
    new InvalidOptionException(
      "DSTL_INVALID_OPTION",
      Map("key" -> s"$prefix$key", "value" -> value, "allowed" -> allowed),
      s"Option $prefix$key has the value '$value', but must be $allowed"
    )

  def changedOption(prefix: String, key: String): InvalidOptionException =
    new InvalidOptionException(
      "DSTL_INVALID_OPTION",
      Map("key" -> s"$prefix$key"),
      s"Option $prefix$key has changed since the start of the query, whose stores would not all write where its driver reads. " +
        "Restart the query, and do not set the option on the session of a foreachBatch function (batch.sparkSession), which " +
        "is the query's own"
    )

  def damaged(file: Path, offset: Long, what: String, cause: Throwable = null): DamagedLogException =
    damage(file.toString, file, offset, what, Map.empty, cause)

  def damagedSegment(file: Path, offset: Long, segment: String, version: Long, what: String): DamagedLogException = {
    val named = Map("segment" -> segment, "version" -> version.toString)
    damage(s"Segment $segment (state version $version) in log file $file", file, offset, what, named, null)
  }

  private def damage(
      subject: String,
      file: Path,
      offset: Long,
      what: String,
      named: Map[String, String],
      cause: Throwable
  ): DamagedLogException =
    new DamagedLogException(
      Map("file" -> file.toString, "offset" -> offset.toString, "damage" -> what) ++ named,
      s"$subject is damaged at offset $offset: $what. None of its changes were replayed.",
      cause = cause
    )

  def unsupportedFormat(file: Path, found: Int, supported: Int): DstlException =
    DstlException("DSTL_UNSUPPORTED_FORMAT", "file" -> file, "found" -> found, "supported" -> supported)(
      s"Log file $file has format version $found; this release reads up to version $supported. Use the release of " +
        "spark-dstl that wrote it, or a later one."
    )

  /** The file is intact, but requires a feature that this release does not have. */
  def unsupportedFeature(file: Path, feature: String, software: Option[String]): DstlException =
    DstlException("DSTL_UNSUPPORTED_FORMAT", "file" -> file, "found" -> feature, "software" -> software.getOrElse(""))(
      s"Log file $file${software.fold("")(name => s", written by $name,")} cannot be read without understanding " +
        s"$feature, which this release does not know. Use the release of spark-dstl that wrote it, or a later one."
    )

  /** @param writtenTo the base path in the commit entry, if it differs from the current one */
  def missingObject(file: Path, segment: String, writtenTo: Option[String] = None): MissingLogObjectException =
    missing(
      file,
      segment,
      s"Log file $file, which $segment needs, does not exist" +
        writtenTo.fold("")(base => s"; when it was written, basePath was $base") +
        ". If the checkpoint was moved, or basePath or storage was changed, set " +
        "spark.sql.streaming.stateStore.dstl.basePath and spark.sql.streaming.stateStore.dstl.storage to where the log is."
    )

  /** The entry that `segment` needs is missing. */
  def missingEntry(entry: Path, segment: String): MissingLogObjectException =
    missing(
      entry,
      segment,
      s"Commit entry $entry, which $segment needs, does not exist. It was deleted, or the checkpoint was copied while its " +
        "query ran."
    )

  /** The entry is there without a log, and the changelog `segment` is no plain file. */
  def entryWithoutLog(entry: Path, segment: String): DamagedLogException =
    damaged(
      entry,
      0,
      s"it has no log, and state/$segment does not exist either. Spark's maintenance deletes the states of old batches, and then " +
        "only a later batch can be read; or the entry was cut off after Spark's lines, or files of state/ were deleted"
    )

  /** An entry in `offsets` is missing that Spark reads at a start. */
  def missingOffsets(offsets: Path): MissingLogObjectException =
    missing(
      offsets,
      s"batch ${offsets.getName}",
      s"$offsets does not exist: a start of the query needs it, because batch ${offsets.getName} has begun. No state is lost, " +
        "but the input of the batch is unknown."
    )

  private def missing(file: Path, neededBy: String, what: String): MissingLogObjectException =
    new MissingLogObjectException(Map("file" -> file.toString, "segment" -> neededBy), what)

  /** The way out for any checkpoint. */
  val AnyWayOut: String =
    "Restore the object from a backup or an older object version; or roll back: dstl verify names the " +
      "newest batch that is intact, and dstl rollback --to goes back to it."

  /** The way out of damage of the checkpoint at `root`. `batch` is the newest one that can be read; None without one. */
  def wayOut(root: Path, batch: Option[Long]): String = batch.fold(
    s"No batch can be rebuilt without it: restore it, or the whole checkpoint, from a backup. `dstl verify $root` lists what " +
      "is damaged."
  )(to =>
    s"The state of batch $to is not lost. Restore the object from a backup or an older object version; or stop the query, check " +
      s"with `dstl verify $root`, and roll back with `dstl rollback $root --to $to --apply`: the query then computes the later " +
      "batches again."
  )

  def brokenChain(entry: Path, batch: Long): DamagedLogException =
    damaged(
      entry,
      0,
      s"it was built on another entry of batch ${batch - 1} than the existing one; one of the two was restored, or " +
        "written late by a fenced driver"
    )

  def otherFormat(file: Path, format: Int, configured: Int): DstlException =
    DstlException("DSTL_OTHER_CHECKPOINT_FORMAT", "file" -> file, "format" -> format, "configured" -> configured)(
      s"The checkpoint of $file has format $format, and $configured is configured. Set " +
        s"spark.sql.streaming.stateStore.checkpointFormatVersion to $format, with which the query continues: this Spark " +
        "does not change the format. Format 2 takes Spark 4.0 or later."
    )

  /** The changelogs of `entry` have checkpoint ids and `segment`, which a reader of the state asks for, has none; or the reverse. */
  def readInOtherFormat(entry: Path, segment: String, format: Int): DstlException =
    DstlException("DSTL_OTHER_CHECKPOINT_FORMAT", "file" -> entry, "segment" -> segment, "format" -> format)(
      s"$entry has checkpoint format $format, and $segment is of the other one. Set " +
        s"spark.sql.streaming.stateStore.checkpointFormatVersion to $format in the session that reads the state. Spark 4.0 " +
        "reads format 1 only."
    )

  def tooLarge(file: Path, length: Long, limit: Long): DstlException =
    DstlException("DSTL_LOG_TOO_LARGE", "file" -> file, "length" -> length, "limit" -> limit)(
      s"Log file $file would take $length bytes to read at once; the limit is $limit. It was not written by " +
        "spark-dstl, or it is damaged."
    )

  /** The request, described by operation and object, had no success in time. */
  def requestTimeout(
      request: String,
      timeoutMillis: Long,
      attempts: Int,
      lastError: Option[Throwable]
  ): DstlException = {
    val because = lastError.fold("None of them was answered")(e => s"The last error: ${Causes.describe(e)}")
    DstlException(
      "DSTL_REQUEST_TIMEOUT",
      "request" -> request,
      "timeoutMillis" -> timeoutMillis,
      "attempts" -> attempts
    )(
      s"$request did not succeed within $timeoutMillis ms, in $attempts attempt(s). $because. Check that storage can " +
        "be reached; to wait longer, set spark.sql.streaming.stateStore.dstl.commit.timeout.",
      lastError.orNull
    )
  }
}
