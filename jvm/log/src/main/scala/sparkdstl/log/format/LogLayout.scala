// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.util.UUID

import org.apache.hadoop.fs.Path

import sparkdstl.log.storage.StoredObject

/**
 * The parts of a data file's name: the executor that wrote it, the file's number among those of this executor, and an instance
 * that distinguishes uploaders and processes with the same name.
 */
final case class DataFileName(epoch: Long, run: UUID, executor: String, sequence: Long, instance: String) {

  /** Relative to the log's base path. */
  def path: String = s"${LogLayout.dataDirectory(epoch, run)}/$executor-$sequence-$instance.log"
}

/** The paths of a log's objects, relative to its base path. Parsers accept only names that this object encodes. */
object LogLayout {
  val DataDirectory = "data"
  val EpochsDirectory = "epochs"

  private val Number = """(0|[1-9][0-9]{0,17})"""
  private val Run = """([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"""
  private val Executor = """([A-Za-z0-9][A-Za-z0-9_-]{0,199})"""
  private val Instance = """([0-9a-z]{1,64})"""
  private val NumberName = Number.r
  private val PinName = s"$Number-$Number-$Run\\.pin".r
  private val DataDirectoryName = s"$Number-$Run".r
  private val DataFilePath = s"$DataDirectory/$Number-$Run/$Executor-$Number-$Instance\\.log".r
  def dataDirectory(epoch: Long, run: UUID): String = s"$DataDirectory/$epoch-$run"

  /**
   * The path of a data file. Characters of `executor` that are not allowed are replaced; `instance` has at most 64 lower-case
   * letters and digits.
   */
  def dataFile(epoch: Long, run: UUID, executor: String, sequence: Long, instance: String): String = {
    val plain = executor.take(199).map(c => if (isPlain(c)) c else '_')
    val name = if (plain.headOption.exists(Character.isLetterOrDigit)) plain else s"x$plain"
    val path = DataFileName(epoch, run, name, sequence, instance).path
    require(isDataFile(path), s"'$path' is not the name of a data file")
    path
  }

  /** Parses a data file's path relative to the base; None if it is not one. */
  def parseDataFile(path: String): Option[DataFileName] = path match {
    case DataFilePath(epoch, run, executor, sequence, instance) =>
      Some(DataFileName(epoch.toLong, UUID.fromString(run), executor, sequence.toLong, instance))
    case _ => None
  }

  /** The path of a data file relative to the base. */
  def nameOf(file: Path): String = s"$DataDirectory/${file.getParent.getName}/${file.getName}"

  /** Whether it is the path of a data file, which lies inside the log's data directory. */
  def isDataFile(path: String): Boolean = DataFilePath.matches(path)

  /** Epoch and run of a directory in [[DataDirectory]]; None if it is not a run's. */
  def parseDataDirectory(name: String): Option[(Long, UUID)] = name match {
    case DataDirectoryName(epoch, run) => Some((epoch.toLong, UUID.fromString(run)))
    case _ => None
  }

  /** The name of an object for a trial of exclusive creation, in [[EpochsDirectory]]. */
  def trial(epoch: Long, random: UUID): String = s"$epoch-$random$TrialEnding"

  /** The epoch of a [[trial]]; None for other names. */
  def parseTrial(name: String): Option[Long] =
    Option.when(name.endsWith(TrialEnding))(name.takeWhile(_ != '-')).flatMap(parseNumber)

  /** The name of the object that marks the run of an epoch as ended, without requests under way. */
  def endOfEpoch(epoch: Long): String = s"$epoch$EndEnding"

  /** The epoch of an [[endOfEpoch]]; None for other names. */
  def parseEndOfEpoch(name: String): Option[Long] =
    Option.when(name.endsWith(EndEnding))(name.stripSuffix(EndEnding)).flatMap(parseNumber)

  /** The batch of a pin in [[EpochsDirectory]], and for how many seconds it was asked for; None for other names. */
  def parsePin(name: String): Option[(Long, Long)] = name match {
    case PinName(batch, seconds, _) => Some(batch.toLong -> seconds.toLong)
    case _ => None
  }

  /** The epoch of a claim in [[EpochsDirectory]]; None for other names. */
  def parseEpoch(name: String): Option[Long] = parseNumber(name)

  /** The batch of a commit entry; None for other names in `commits/`. */
  def parseBatch(name: String): Option[Long] = parseNumber(name)

  /** The batches of the entries in a listing of `commits/`, in ascending order. */
  def batchesIn(commits: Seq[StoredObject]): Vector[Long] =
    commits.flatMap(entry => parseBatch(entry.path.getName)).sorted.toVector

  /** The size of each entry in a listing of `commits/`, by batch. */
  def bytesIn(commits: Seq[StoredObject]): Map[Long, Long] =
    commits.flatMap(entry => parseBatch(entry.path.getName).map(_ -> entry.length)).toMap

  private val TrialEnding = ".trial"
  private val EndEnding = ".ended"

  private def parseNumber(name: String): Option[Long] = Option.when(NumberName.matches(name))(name.toLong)

  private def isPlain(c: Char): Boolean =
    c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

/** The paths of a query's checkpoint and log. `configuredBase` is `base`, the directory of data files, if configured. */
final case class QueryLocation(root: Path, base: Path, configuredBase: Option[String]) {
  val commits: Path = new Path(root, "commits")
  def entry(batch: Long): Path = new Path(commits, batch.toString)

  /** The directory of Spark's offset log: an entry begins its batch. */
  val offsets: Path = new Path(root, "offsets")
  def offsetsOf(batch: Long): Path = new Path(offsets, batch.toString)

  /** The directory of Spark's files of state. */
  val state: Path = new Path(root, "state")

  /** The path of a file of state below that directory: `operator/partition/...`. */
  def belowState(file: Path): String = file.toUri.getPath.stripPrefix(s"${state.toUri.getPath}/")

  /** The segment whose plain file this is, if it is one. */
  def plainSegment(file: Path): Option[SegmentKey] = SegmentKey.parse(belowState(file.getParent), file.getName)

  /** The directory of claims. It is in the checkpoint even if the log is elsewhere, because claims fence commit entries. */
  val epochs: Path = new Path(root, s"dstl/${LogLayout.EpochsDirectory}")
  def epoch(number: Long): Path = new Path(epochs, number.toString)

  /** See [[LogLayout.trial]]. */
  def trial(epoch: Long, random: UUID): Path = new Path(epochs, LogLayout.trial(epoch, random))

  def file(name: String): Path = new Path(base, name)
}
