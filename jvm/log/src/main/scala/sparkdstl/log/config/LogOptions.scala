// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

import java.util.Locale

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration

import sparkdstl.log.config.OptionType._
import sparkdstl.log.error.LogErrors
import sparkdstl.log.storage.PublishMode

/**
 * One option below [[LogOptions.Prefix]]: the source of its parsing, its validation, the reference in `docs/` and the Python
 * helper. The default is in the notation of a user, or `None` if `defaultText` describes it; `counterpart` is Flink's option.
 */
final case class LogOption[T](
    key: String,
    optionType: OptionType[T],
    default: Option[String],
    defaultText: String,
    doc: String,
    counterpart: Option[String]
)

/** The policy of hedges and retries; see [[LogOptions.UploadRetryPolicy]]. */
sealed trait RetryPolicy

object RetryPolicy {
  case object NoRetry extends RetryPolicy
  case object Fixed extends RetryPolicy
  case object Hedged extends RetryPolicy
}

/** Which queries may run tasks before the offsets of their batch are durable; see [[LogOptions.OverlapOffsets]]. */
sealed trait OverlapMode

object OverlapMode {
  case object Auto extends OverlapMode
  case object Always extends OverlapMode
  case object Never extends OverlapMode
}

/** The validated configuration of the log, by key. Sizes are bytes, durations milliseconds. */
final case class LogOptions private (private val values: Map[String, Any]) {
  import LogOptions._

  val enabled: Boolean = of(Enabled)
  val inMemory: Boolean = of(Storage)
  val publish: PublishMode = of(Publish)
  val requireExclusiveCreate: Boolean = of(RequireExclusiveCreate)
  val basePath: Option[String] = values.get(BasePath.key).map(_.asInstanceOf[String])
  val commitAsync: Boolean = of(CommitMode)
  val commitTimeoutMs: Long = of(CommitTimeout)
  val overlapOffsets: OverlapMode = of(OverlapOffsets)
  val inlineMaxSegmentSize: Long = of(InlineMaxSegmentSize)
  val inlineMaxBatchSize: Long = of(InlineMaxBatchSize)
  val preemptivePersistThreshold: Long = of(PreemptivePersistThreshold)
  val persistSizeThreshold: Long = of(PersistSizeThreshold)
  val persistDelayMs: Long = of(PersistDelay)
  val materializeIntervalMs: Long = of(MaterializeInterval)
  val materializeReplayCost: Int = of(MaterializeReplayCost)
  val materializeMaxFailures: Int = of(MaterializeMaxFailures)
  val materializeFailsQuery: Boolean = of(MaterializeOnFailure)
  val materializeThreads: Int = of(MaterializeThreads)
  val uploadThreads: Int = of(UploadThreads)
  val uploadMaxInFlight: Long = of(UploadMaxInFlight)
  val retryPolicy: RetryPolicy = of(UploadRetryPolicy)
  val uploadTimeoutMs: Long = of(UploadTimeout)
  val uploadMaxAttempts: Int = of(UploadMaxAttempts)
  val nextAttemptDelayMs: Long = of(NextAttemptDelay)
  val downloadThreads: Int = of(DownloadThreads)
  val cacheMaxSize: Long = of(CacheMaxSize)
  val cacheIdleTimeoutMs: Long = of(CacheIdleTimeout)
  val diskCacheMaxSize: Long = of(DiskCacheMaxSize)
  val localRecoveryMaxSize: Long = of(LocalRecoveryMaxSize)
  val pinsMaxDurationMs: Long = of(PinsMaxDuration)
  val simulatedSlownessMs: Long = of(SimulateSlowStorage)
  def logsChanges: Boolean = enabled && commitAsync

  /** The key of an option by which `others` keep changes elsewhere: the driver and the executors of a run must agree on these. */
  def placedElsewhereBy(others: LogOptions): Option[String] =
    Placing.find(key => values.get(key) != others.values.get(key))

  /** These options with another value of one option, without validation. */
  def updated[T](option: LogOption[T], value: T): LogOptions = LogOptions(values + (option.key -> value))

  private def of[T](option: LogOption[T]): T = values(option.key).asInstanceOf[T]
}

/** The single source of options: `docs/configuration.md` and the Python helper's `options.json` are generated from it. */
object LogOptions {

  val Prefix = "spark.sql.streaming.stateStore.dstl."

  private val KiB = 1024L
  private val MiB = 1024L * KiB
  private val GiB = 1024L * MiB
  private val Second = 1000L
  private val Hour = 3600L * Second

  private val publishModes =
    Choice[PublishMode]("auto" -> PublishMode.Auto, "direct" -> PublishMode.Direct, "rename" -> PublishMode.Rename)

  private val retryPolicies = Choice[RetryPolicy](
    "none" -> RetryPolicy.NoRetry,
    "fixed" -> RetryPolicy.Fixed,
    "hedged" -> RetryPolicy.Hedged
  )

  private val overlapModes = Choice[OverlapMode](
    "auto" -> OverlapMode.Auto,
    "always" -> OverlapMode.Always,
    "never" -> OverlapMode.Never
  )

  private var declared = Vector.empty[LogOption[_]]

  private def option[T](key: String, optionType: OptionType[T], default: String)(
      doc: String,
      counterpart: String = ""
  ): LogOption[T] = {
    require(optionType.parse(default).isDefined, s"the default of $key is not allowed: $default")
    declare(LogOption(key, optionType, Some(default), default, doc, Option(counterpart).filter(_.nonEmpty)))
  }

  private def declare[T](option: LogOption[T]): LogOption[T] = {
    declared :+= option
    option
  }

  val Enabled: LogOption[Boolean] = option("enabled", Flag, "true")(
    "Whether state changes are written to the log. When false, changelogs are written as plain files in Spark's own " +
      "layout, as Spark would write them, and the log stays readable. The option may change between two runs.",
    "state.changelog.enabled"
  )

  val Storage: LogOption[Boolean] = option("storage", Choice("filesystem" -> false, "memory" -> true), "filesystem")(
    "Where the log is kept: `filesystem` is the file system of `basePath`; `memory` is the driver's memory, for tests " +
      "in `local` mode, and is lost with the process.",
    "state.changelog.storage"
  )

  val Publish: LogOption[PublishMode] = option("storage.publish", publishModes, "auto")(
    "How an object becomes visible as a whole: `direct` writes it under its name, for storage where an object appears " +
      "only when its stream is closed (S3, GCS), and a query does not start elsewhere; `rename` writes a temporary file and " +
      "renames it (HDFS, ABFS, local disks). `auto` asks the file system."
  )

  val RequireExclusiveCreate: LogOption[Boolean] = option("storage.requireExclusiveCreate", Flag, "false")(
    "Whether a query refuses to start where storage cannot create an object exclusively. Without that, two drivers on one " +
      "checkpoint may both commit a batch; when false, the query warns at its start and reads again around each commit."
  )

  val BasePath: LogOption[String] = declare(LogOption(
    "basePath",
    Directory,
    None,
    "`<checkpoint>/dstl`",
    "Directory of the log. One query's log must not lie in another's. It may be on another file system than the " +
      "checkpoint. Once a query has written to its log, changing this makes it unreadable until it is set back or the " +
      "log's files are moved along.",
    Some("dstl.dfs.base-path")
  ))

  val CommitMode: LogOption[Boolean] = option("commit.mode", Choice("async" -> true, "sync" -> false), "async")(
    "`async`: a task only hands its changes over, and one barrier before the commit entry makes a batch's changes " +
      "durable. `sync`: each task writes its own changelog file in Spark's layout and waits for it, with the timeouts " +
      "and retries configured here; the log is not used for new batches."
  )

  val CommitTimeout: LogOption[Long] = option("commit.timeout", Duration(Second, 24 * Hour), "10min")(
    "How long the barrier waits for a batch's changes to be durable, and any single request for an answer, before the " +
      "batch fails. Errors are retried until then, and a storage that stalls for less only makes the batch wait. From " +
      "each start of a query until its first commit, a missing permission or a full disk fails it after three seconds.",
    "execution.checkpointing.timeout"
  )

  val OverlapOffsets: LogOption[OverlapMode] = option("commit.overlapOffsets", overlapModes, "auto")(
    "Whether a batch's entry in `offsets` is written while the batch's tasks run, once all stores of the query have changed in " +
      "the batch before. Tasks that change state end, and the batch commits, only when it is durable. `auto`: for sinks that show " +
      "nothing of a batch before its tasks have ended (files, Delta, Iceberg, memory, console, noop), and not for sources of " +
      "Spark's first API other than files, Kafka and Delta. `always`: for all; if the driver dies at that moment, Kafka, `foreach` " +
      "and `foreachBatch` may have sent rows of a batch that is then planned anew, with other input. `never`: tasks begin after " +
      "it, as always with Spark's own provider and checkpoint format version 1."
  )

  val InlineMaxSegmentSize: LogOption[Long] = option("inline.maxSegmentSize", Size(0, 16 * MiB), "128k")(
    "Segments up to this size travel to the driver with the task's seal and are stored in the commit entry itself; larger " +
      "ones are uploaded by their executor. 0 uploads everything.",
    "state.storage.fs.memory-threshold"
  )

  val InlineMaxBatchSize: LogOption[Long] = option("inline.maxBatchSize", Size(0, 512 * MiB), "16m")(
    "How many bytes of small segments the driver holds for one stage of a batch. Executors upload what exceeds it."
  )

  val PreemptivePersistThreshold: LogOption[Long] =
    option("preemptivePersistThreshold", Size(64 * KiB, 512 * MiB), "5m")(
      "Once a store has this many bytes of unsealed changes, the executor uploads them while the task still runs. No part " +
        "of a segment is larger, so recovery also reads and verifies at most this much at once.",
      "dstl.dfs.preemptive-persist-threshold"
    )

  val PersistSizeThreshold: LogOption[Long] = option("batch.persistSizeThreshold", Size(64 * KiB, GiB), "10m")(
    "An executor groups segments into one file and uploads it when the group has this size, or when the driver asks at " +
      "the end of the batch.",
    "dstl.dfs.batch.persist-size-threshold"
  )

  val PersistDelay: LogOption[Long] = option("batch.persistDelay", Duration(10, Hour), "1s")(
    "How long a segment waits on its executor for others of the same file before it is uploaded. Changes of this period " +
      "may be lost with an executor while tasks still run."
  )

  val MaterializeInterval: LogOption[Long] = option("materialize.interval", Duration(Second, 24 * Hour), "10min")(
    "The interval at which a changed store is snapshotted, in the background, so that its log can be deleted. Stores begin " +
      "at different times.",
    "state.changelog.periodic-materialize.interval"
  )

  val MaterializeReplayCost: LogOption[Int] = option("materialize.replayCost", Number(0, 100000), "50")(
    "How many bytes of a snapshot are loaded in the time in which one byte of the log is replayed. A store whose log would " +
      "take longer to replay than its snapshot takes to load, or has 150 to 200 versions, is snapshotted before its interval is " +
      "over, but not before `spark.sql.streaming.stateStore.minDeltasForSnapshot` versions. With 0, only the interval counts."
  )

  val MaterializeMaxFailures: LogOption[Int] = option("materialize.maxFailures", Number(1, 1000), "3")(
    "How many attempts at a snapshot of a store fail in a row before `materialize.onFailure` applies. The log is kept " +
      "meanwhile.",
    "state.changelog.max-failures-allowed"
  )

  val MaterializeOnFailure: LogOption[Boolean] =
    option("materialize.onFailure", Choice("log" -> false, "fail" -> true), "log")(
      "After `materialize.maxFailures`: `log` logs an error, and the next snapshot is made when it is due; `fail` fails the " +
        "query."
    )

  val MaterializeThreads: LogOption[Int] = option("materialize.numThreads", Number(1, 64), "2")(
    "How many threads of a process make and upload snapshots, for all queries together: the largest value of any query."
  )

  val UploadThreads: LogOption[Int] = option("upload.numThreads", Number(1, 256), "5")(
    "How many requests a process makes at once to a file system, for all queries of a user together, in addition to " +
      "`download.numThreads`: the largest values of any query, and at least 16 together. Hedges have separate " +
      "threads, up to `upload.maxAttempts` times as many in all; more are in use only while connections hang.",
    "dstl.dfs.upload.num-threads"
  )

  val UploadMaxInFlight: LogOption[Long] = option("upload.maxInFlight", Size(MiB, 64 * GiB), "100m")(
    "How many bytes may wait for upload in a process, for all queries together: the largest value of any query. " +
      "A task that would exceed it waits.",
    "dstl.dfs.upload.max-in-flight"
  )

  val UploadRetryPolicy: LogOption[RetryPolicy] = option("upload.retryPolicy", retryPolicies, "hedged")(
    "For every request to storage. `none`: one attempt, however long it takes. `fixed`: another attempt after an error, " +
      "and when the newest has no answer after `upload.timeout`. `hedged`: another also when the newest is slower than 95 % " +
      "of recent ones of its kind, for at most one request in ten. The first attempt to succeed counts.",
    "dstl.dfs.upload.retry-policy"
  )

  val UploadTimeout: LogOption[Long] = option("upload.timeout", Duration(1, Hour), "1s")(
    "After how long without an answer from the newest attempt another begins; with `hedged`, after this at the latest.",
    "dstl.dfs.upload.timeout"
  )

  val UploadMaxAttempts: LogOption[Int] = option("upload.maxAttempts", Number(1, 20), "3")(
    "How many attempts of one request run at once. If none of them is answered, the oldest is aborted and another begins, " +
      "at intervals that double up to 10 s, until `commit.timeout`. Attempts after errors are not limited in number.",
    "dstl.dfs.upload.max-attempts"
  )

  val NextAttemptDelay: LogOption[Long] = option("upload.nextAttemptDelay", Duration(0, Hour), "500ms")(
    "The delay of a retry after a failed attempt, plus or minus up to half of it at random. It doubles with each further " +
      "error, to at most 10 s.",
    "dstl.dfs.upload.next-attempt-delay"
  )

  val DownloadThreads: LogOption[Int] = option("download.numThreads", Number(1, 256), "8")(
    "How many log files an executor fetches at once on recovery, and how many ranges, of 4 MiB, of a store's snapshot."
  )

  val CacheMaxSize: LogOption[Long] = option("download.cache.maxSize", Size(MiB, 64 * GiB), "64m")(
    "How many bytes of commit entries, and of parts of data files that several stores share, an executor keeps in memory on " +
      "recovery, so that it fetches each once for all its stores."
  )

  val CacheIdleTimeout: LogOption[Long] = option("download.cache.idleTimeout", Duration(Second, 24 * Hour), "1min")(
    "How long unread entries stay in that memory: the shortest value of any query.",
    "dstl.dfs.download.local-cache.idle-timeout-ms"
  )

  val DiskCacheMaxSize: LogOption[Long] = option("download.diskCache.maxSize", Size(0, 1024 * GiB), "1g")(
    "How many bytes of the same an executor keeps on its local disk on recovery, in addition to those in memory, for stores " +
      "that are loaded later. 0 keeps none."
  )

  val LocalRecoveryMaxSize: LogOption[Long] = option("localRecovery.maxSize", Size(0, 1024 * GiB), "4g")(
    "How many bytes of snapshots' files an executor keeps on its local disk for stores that it opens again, after a restart " +
      "of the query or when a store returns from another executor: it fetches only missing files. Files of an open store " +
      "take no additional space. 0 keeps none.",
    "state.backend.local-recovery"
  )

  val PinsMaxDuration: LogOption[Long] = option("pins.maxDuration", Duration(0, 30 * 24 * Hour), "24h")(
    "How long a pin keeps the log that its batch needs, whatever its reader has asked for. A pin of a reader that has died ends " +
      "after this at the latest. 0 ignores pins."
  )

  val SimulateSlowStorage: LogOption[Long] = option("simulate.slowStorage", Duration(0, 10 * Second), "0")(
    "For trials on a local disk, never for production: delays each request for a file of the checkpoint as an object store " +
      "does, at random, half of them for longer than this and one in a hundred for six times as long. It also applies when " +
      "`enabled` is false. 0 delays nothing; otherwise a query warns at its start."
  )

  /** The keys of options that decide whether changes are in the log, and where the log is. */
  val Placing: Seq[String] = Seq(Enabled, CommitMode, Storage, BasePath).map(_.key)

  /** In the order of the reference. */
  val all: Seq[LogOption[_]] = declared

  /**
   * Parses the options of a configuration; keys without [[Prefix]] are ignored.
   *
   * @throws sparkdstl.log.error.InvalidOptionException for an unknown key below the prefix and for a value that is not allowed
   */
  def parse(configuration: Iterable[(String, String)]): LogOptions = {
    val configured = configuration.collect {
      case (key, value) if key.startsWith(Prefix) && value != null => key.stripPrefix(Prefix) -> value.trim
    }.toMap
    configured.keys.toVector.sorted.find(key => !all.exists(_.key == key)).foreach { key =>
      throw LogErrors.unknownOption(Prefix, key, nearest(key))
    }
    LogOptions(
      (for (option <- all; text <- configured.get(option.key).orElse(option.default)) yield option.key ->
        option.optionType.parse(text).getOrElse(
          throw LogErrors.invalidOption(Prefix, option.key, text, option.optionType.allowed)
        )).toMap
    )
  }

  /** Parses the options in a Hadoop configuration, into which Spark copies the session's SQL configurations. */
  def parse(configuration: Configuration): LogOptions =
    parse(configuration.getPropsWithPrefix(Prefix).asScala.map { case (key, value) => (Prefix + key, value) })

  val default: LogOptions = parse(Nil)

  /** The known key with the smallest edit distance (Levenshtein) to `key`, preferably one that contains it. */
  private def nearest(key: String): String = {
    val known = all.map(_.key)
    val containing = known.filter(_.toLowerCase(Locale.ROOT).contains(key.toLowerCase(Locale.ROOT)))
    (if (containing.isEmpty) known else containing).minBy(name => (edits(key, name), name))
  }

  private def edits(a: String, b: String): Int = {
    val first = (0 to b.length).toArray
    a.foldLeft(first) { (previous, charA) =>
      val row = new Array[Int](b.length + 1)
      row(0) = previous(0) + 1
      b.indices.foreach { j =>
        val replace = previous(j) + (if (charA.toLower == b(j).toLower) 0 else 1)
        row(j + 1) = math.min(replace, math.min(previous(j + 1), row(j)) + 1)
      }
      row
    }.last
  }
}
