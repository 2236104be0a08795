package sparkdstl.log.coordinator.ownership

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Success, Try}

import org.apache.hadoop.fs.Path

import sparkdstl.log.coordinator.view.Guarded
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.request.{Outcome, StorageClient}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{ListObjects, Read}

/**
 * What a run writes into the object that claims its epoch.
 *
 * The claim is also a fence. A run that was paused, for however long, can only try to create the entry that follows the last
 * one it knows. If it has committed nothing, that is `first` of its own claim. Otherwise the run that took over has committed
 * that batch, as its first one, and it is `first` of that run's claim. So the entry that a claim names as its first is not deleted
 * while the claim exists, and the paused run finds it taken.
 *
 * @param first
 *   the batch whose entry the run would create first
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
 * @param claimed
 *   epochs that are claimed
 * @param ended
 *   epochs whose runs have ended with nothing under way
 * @param trials
 *   names of objects with which runs have tried how storage creates, with their epochs
 */
private[coordinator] final case class ListedClaims(
    claimed: Vector[Long],
    ended: Set[Long],
    trials: Vector[(Long, String)]
)

/**
 * The claims on storage of one checkpoint. A claim never changes, so each is read once. Thread-safe.
 *
 * @param own
 *   epoch of this run
 * @param kept
 *   how many claims stay at most
 */
private[coordinator] final class Claims(
    location: QueryLocation,
    checkpoint: StorageClient,
    own: Long,
    kept: Int,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor
  private val known = new Guarded(Map.empty[Long, Option[Claim]])

  /**
   * The entries that the claims on storage fence: those that a run which has committed nothing would create, and those that the run
   * before would. This run has created its own. Fails if a claim cannot be read.
   */
  def fences(): Future[Set[Long]] = read().map { case (listed, claims) =>
    val hasCommitted = claims.valuesIterator.flatten.map(_.follows).toSet + own
    claims.iterator.collect {
      case (epoch, Some(claim))
          if !hasCommitted(epoch) && !listed.ended(epoch) || mayBePaused(claim.follows, listed) => claim.first
    }.toSet
  }

  /** Deletes claims of lower epochs that fence nothing any more, and what trials of storage have left. */
  def deleteObsolete(): Future[Unit] = read().flatMap { case (listed, claims) =>
    // Nothing can be created under it, nor by the run before it.
    val needless = listed.claimed.filter { epoch =>
      listed.ended(epoch) && claims.get(epoch).flatten.exists(claim => !mayBePaused(claim.follows, listed))
    }
    val obsolete = (needless ++ listed.claimed.sorted.dropRight(kept)).distinct.filter(_ < own)
    val marks = listed.ended.filter(epoch => obsolete.contains(epoch) || !listed.claimed.contains(epoch))
    val trials = listed.trials.collect { case (epoch, name) if epoch < own => name }
    val names = obsolete.map(_.toString) ++ marks.map(LogLayout.endOfEpoch) ++ trials
    if (names.isEmpty) Future.unit
    else checkpoint.delete(names.map(new Path(location.epochs, _)), timeoutMillis).flatMap(_.asFuture)
  }

  private def mayBePaused(epoch: Long, listed: ListedClaims): Boolean =
    epoch == Claim.AfterStockSpark || listed.claimed.contains(epoch) && !listed.ended(epoch)

  /** The names on storage, and by epoch the claims; None for one that is gone or that another release has written. */
  private def read(): Future[(ListedClaims, Map[Long, Option[Claim]])] =
    for {
      listed <- Claims.list(location, checkpoint, timeoutMillis).flatMap(_.asFuture)
      unknown = listed.claimed.filterNot(known.get.contains)
      found <- Future.sequence(unknown.map(epoch =>
        Claims.read(location, checkpoint, epoch, timeoutMillis).map(epoch -> _)
      ))
    } yield (
      listed,
      known.update(before => (before ++ found).filter { case (epoch, _) => listed.claimed.contains(epoch) })
    )
}

object Claims {
  private val MaxLength = 4096L

  /**
   * Marks that nothing will be created under the claim of `epoch` any more: its run has ended, and every request of it as well.
   * Always succeeds: without the mark the claim stands longer than it must.
   */
  def end(location: QueryLocation, checkpoint: StorageClient, epoch: Long, timeoutMillis: Long)(implicit
      executor: ExecutionContext
  ): Future[Unit] =
    checkpoint.create(new Path(location.epochs, LogLayout.endOfEpoch(epoch)), Payload(Mark), timeoutMillis)(_ => true)
      .transform(_ => Success(()))

  private val Mark = "ended\n".getBytes(UTF_8)

  /** Run and host of the newest claim, which the error of a fenced driver names. None if they are not known; never fails. */
  def newest(
      location: QueryLocation,
      checkpoint: StorageClient,
      timeoutMillis: Long,
      runtime: ProtocolRuntime
  ): Future[Option[(UUID, String)]] = {
    implicit val executor: ExecutionContext = runtime.executor
    val newest = for {
      listed <- list(location, checkpoint, timeoutMillis).flatMap(_.asFuture)
      claim <- read(location, checkpoint, listed.claimed.max, timeoutMillis)
    } yield claim.map(of => of.run -> of.host)
    newest.recover { case _ => None }
  }

  private[ownership] def list(location: QueryLocation, checkpoint: StorageClient, timeoutMillis: Long)(implicit
      executor: ExecutionContext
  ): Future[Outcome[ListedClaims]] = checkpoint.run(ListObjects(location.epochs), timeoutMillis).map(_.map { objects =>
    val names = objects.iterator.map(_.path.getName).toVector
    ListedClaims(
      names.flatMap(LogLayout.parseEpoch),
      names.flatMap(LogLayout.parseEndOfEpoch).toSet,
      names.flatMap(name => LogLayout.parseTrial(name).map(_ -> name))
    )
  })

  private def read(location: QueryLocation, checkpoint: StorageClient, epoch: Long, timeoutMillis: Long)(implicit
      executor: ExecutionContext
  ): Future[Option[Claim]] =
    checkpoint.run(Read(location.epoch(epoch), MaxLength), timeoutMillis)
      .flatMap(_.orElseFail(ProtocolErrors.unreadable(location.epoch(epoch), _))).map(_.flatMap(Claim.parse))
}
