package sparkdstl.log.format

import java.util.UUID

import org.apache.hadoop.fs.Path

/**
 * Where one query's checkpoint and log are.
 *
 * @param root the checkpoint's directory, made absolute
 * @param base the directory of data files
 * @param configuredBase `base` if it was configured
 */
final case class QueryLocation(root: Path, base: Path, configuredBase: Option[String]) {
  val commits: Path = new Path(root, "commits")

  def entry(batch: Long): Path = new Path(commits, batch.toString)

  /** Where runs claim their epochs: always in the checkpoint, whose storage decides what is exclusive. */
  val epochs: Path = new Path(root, s"dstl/${LogLayout.EpochsDirectory}")

  def epoch(number: Long): Path = new Path(epochs, number.toString)

  /** See [[LogLayout.trial]]. */
  def trial(epoch: Long, random: UUID): Path = new Path(epochs, LogLayout.trial(epoch, random))

  /** A file of the log, by its name relative to the base. */
  def file(name: String): Path = new Path(base, name)
}
