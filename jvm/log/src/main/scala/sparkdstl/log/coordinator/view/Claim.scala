package sparkdstl.log.coordinator.view

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.util.Try

/**
 * What a run writes into the object that claims its epoch.
 *
 * The claim is also a fence. A run that was paused, for however long, can only try to create the entry that follows the last
 * one it knows. If it has committed nothing, that is `first` of its own claim. Otherwise the run that took over has committed
 * that batch, as its first one, and it is `first` of that run's claim. So the entry that a claim names as its first is not deleted
 * while the claim exists, and the paused run finds it taken.
 *
 * @param first the batch whose entry the run would create first
 * @param follows
 *   the epoch of the run that has written the entry before it, and may be paused; 0 if there is no such entry, -1 if stock Spark
 *   wrote it
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
 * The names in the directory of claims.
 *
 * @param claimed epochs that are claimed
 * @param ended epochs whose runs have ended with nothing under way
 * @param trials names of objects with which runs have tried how storage creates, with their epochs
 */
private[coordinator] final case class ListedClaims(
    claimed: Vector[Long],
    ended: Set[Long],
    trials: Vector[(Long, String)]
) {

  /**
   * The entries that claims fence: those that a run which has committed nothing would create, and those that the run before
   * would.
   *
   * @param claims by epoch; None for one that was deleted or that another release has written
   * @param own epoch of this run, which has created its own
   */
  def fences(claims: Map[Long, Option[Claim]], own: Long): Set[Long] = {
    val hasCommitted = claims.valuesIterator.flatten.map(_.follows).toSet + own
    claims.iterator.collect {
      case (epoch, Some(claim)) if !hasCommitted(epoch) && !ended(epoch) || mayBePaused(claim.follows) => claim.first
    }.toSet
  }

  /**
   * Claims of lower epochs that fence nothing: nothing can be created under them, nor by the runs before them. And all but the
   * newest `kept`.
   */
  def obsolete(claims: Map[Long, Option[Claim]], own: Long, kept: Int): Vector[Long] = {
    val unneeded = claimed.filter { epoch =>
      ended(epoch) && claims.get(epoch).flatten.exists(claim => !mayBePaused(claim.follows))
    }
    (unneeded ++ claimed.sorted.dropRight(kept)).distinct.filter(_ < own)
  }

  private def mayBePaused(epoch: Long): Boolean =
    epoch == Claim.AfterStockSpark || claimed.contains(epoch) && !ended(epoch)
}
