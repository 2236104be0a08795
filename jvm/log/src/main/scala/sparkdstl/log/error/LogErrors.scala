// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.error

import org.apache.hadoop.fs.Path

/** Errors of the log's format, storage and options, each with its condition. */
object LogErrors {

  def unknownOption(prefix: String, key: String, nearest: String): InvalidOptionException =
    new InvalidOptionException(
      "DSTL_UNKNOWN_OPTION",
      Map("key" -> s"$prefix$key", "nearest" -> s"$prefix$nearest"),
      s"Unknown option $prefix$key. Did you mean $prefix$nearest?"
    )

  def invalidOption(prefix: String, key: String, value: String, allowed: String): InvalidOptionException =
    new InvalidOptionException(
      "DSTL_INVALID_OPTION",
      Map("key" -> s"$prefix$key", "value" -> value, "allowed" -> allowed),
      s"Option $prefix$key has the value '$value', but must be $allowed."
    )

  def damaged(file: Path, offset: Long, what: String, cause: Throwable = null): DamagedLogException =
    damage(s"Log file $file", file, offset, what, Map.empty, cause)

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
      s"$subject is damaged at offset $offset: $what. None of its changes were replayed. Restore the object from a backup or an " +
        "older object version; or roll back to a batch before it by removing the later entries of commits/ and offsets/ " +
        "of the checkpoint.",
      cause
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
  def missingObject(
      file: Path,
      segment: String,
      cause: Throwable,
      writtenTo: Option[String] = None
  ): MissingLogObjectException =
    new MissingLogObjectException(
      Map("file" -> file.toString, "segment" -> segment),
      s"Log file $file, which $segment needs, does not exist" +
        writtenTo.fold("")(base => s"; when it was written, basePath was $base") +
        ". If the checkpoint was moved or basePath was changed, " +
        "set spark.sql.streaming.stateStore.dstl.basePath to where the log is; if it was deleted, restore it, or roll " +
        "back to a batch before it by removing the later entries of commits/ and offsets/ of the checkpoint.",
      cause
    )

  /** The entry that `segment` needs is missing; `before` is the newest earlier batch with an entry. */
  def missingEntry(entry: Path, segment: String, before: Option[Long], cause: Throwable): MissingLogObjectException = {
    val checkpoint = entry.getParent.getParent
    val wayBack = before.fold("restore the checkpoint from a backup") { batch =>
      s"stop the query and roll back to batch $batch: dstl rollback $checkpoint --to $batch --apply"
    }
    new MissingLogObjectException(
      Map("file" -> entry.toString, "segment" -> segment),
      s"Commit entry $entry, which $segment needs, does not exist. It was deleted, or the checkpoint was copied while its " +
        s"query ran. Restore the entry; or $wayBack",
      cause
    )
  }

  def brokenChain(entry: Path, batch: Long): DamagedLogException =
    damaged(
      entry,
      0,
      s"it was built on another entry of batch ${batch - 1} than the existing one; one of the two was restored, or " +
        "written late by a fenced driver"
    )

  def otherFormat(snapshot: Path): DstlException =
    DstlException("DSTL_OTHER_CHECKPOINT_FORMAT", "file" -> snapshot)(
      s"$snapshot belongs to a checkpoint with state store checkpoint ids, and this query runs without them. Set " +
        "spark.sql.streaming.stateStore.checkpointFormatVersion to what the checkpoint was begun with, 2 or later; Spark " +
        "cannot change it."
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
