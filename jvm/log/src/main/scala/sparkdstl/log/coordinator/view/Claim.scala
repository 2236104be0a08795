// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.util.Try

/**
 * The content of the object by which a run claims its epoch.
 *
 * A claim also fences paused runs. A paused run that resumes tries to create the entry after the last one in its view: `first`
 * of its own claim if it has committed nothing, else `first` of the claim of the run that replaced it. Retention keeps the
 * entry `first` while the claim exists, so storage refuses the create of the paused run.
 *
 * @param first the first batch that the run would commit
 * @param follows the epoch of the run that wrote the entry before `first`, which may be paused; 0 without such an entry, -1 if
 *   stock Spark wrote it
 */
final case class Claim(run: UUID, host: String, first: Long, follows: Long) {
  def bytes: Array[Byte] = s"claim $run $host $first $follows\n".getBytes(UTF_8)
}

object Claim {
  val AfterNothing = 0L
  val AfterStockSpark: Long = -1L

  def parse(bytes: Array[Byte]): Option[Claim] = new String(bytes, UTF_8).trim.split(' ') match {
    case Array("claim", run, host, first, follows) =>
      Try(Claim(UUID.fromString(run), host, first.toLong, follows.toLong)).toOption
    case _ => None
  }
}

/**
 * The objects in the directory of claims: the lengths of claims by epoch, the epochs whose runs have ended without requests under
 * way, epoch and name of each object of a trial of exclusive creation, and the pins of readers.
 */
private[coordinator] final case class ListedClaims(
    lengths: Map[Long, Long],
    ended: Set[Long],
    trials: Vector[(Long, String)],
    pins: Vector[Pin]
) {
  val claimed: Vector[Long] = lengths.keys.toVector.sorted

  /**
   * The batches whose entries `claims` fence, by epoch: the first batch of each run that may be at work and has committed
   * nothing, and of each run whose predecessor may be paused. The claim is None if it was deleted or has the format of another
   * release. The run of epoch `own` counts as one that has committed.
   */
  def fences(claims: Map[Long, Option[Claim]], own: Long): Set[Long] = {
    val hasCommitted = claims.valuesIterator.flatten.map(_.follows).toSet + own
    claims.iterator.collect {
      case (epoch, Some(claim)) if !hasCommitted(epoch) && !ended(epoch) || mayBePaused(claim.follows) => claim.first
    }.toSet
  }

  /** Claims of lower epochs that can be deleted: those whose run and predecessor have ended, and all but the newest `kept`. */
  def obsolete(claims: Map[Long, Option[Claim]], own: Long, kept: Int): Vector[Long] = {
    val unneeded = claimed.filter { epoch =>
      ended(epoch) && claims.get(epoch).flatten.exists(claim => !mayBePaused(claim.follows))
    }
    (unneeded ++ claimed.dropRight(kept)).distinct.filter(_ < own)
  }

  private def mayBePaused(epoch: Long): Boolean =
    epoch == Claim.AfterStockSpark || claimed.contains(epoch) && !ended(epoch)
}
