// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

import java.util.UUID

import org.apache.hadoop.fs.Path

/**
 * The paths of one query's checkpoint, `root`, and log; `configuredBase` is the directory of data files, `base`, if it was
 * configured.
 */
final case class QueryLocation(root: Path, base: Path, configuredBase: Option[String]) {
  val commits: Path = new Path(root, "commits")

  def entry(batch: Long): Path = new Path(commits, batch.toString)

  /** The directory of claims. It is in the checkpoint even if the log is elsewhere, because claims fence commit entries. */
  val epochs: Path = new Path(root, s"dstl/${LogLayout.EpochsDirectory}")

  def epoch(number: Long): Path = new Path(epochs, number.toString)

  /** See [[LogLayout.trial]]. */
  def trial(epoch: Long, random: UUID): Path = new Path(epochs, LogLayout.trial(epoch, random))

  def file(name: String): Path = new Path(base, name)
}
