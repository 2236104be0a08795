// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.ownership

import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Arrays, UUID}
import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future}
import scala.util.Success

import org.apache.hadoop.fs.Path

import sparkdstl.log.coordinator.view.{Claim, GuardedState, ListedClaims, Pin, RunState}
import sparkdstl.log.format.LogLayout
import sparkdstl.log.read.EntryReader
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.StorageOperation.{ListObjects, Read, ReadRange}

/** The claims of a checkpoint, of which `kept` stay at most. A claim never changes: a run reads each once. Thread-safe. */
private[coordinator] final class Claims(storage: QueryStorage, state: GuardedState, kept: Int) {
  import storage.location
  private implicit val executor: ExecutionContext = storage.runtime.executor

  /**
   * The entries that the claims on storage fence, see [[ListedClaims.fences]], and the pins there. Fails if a claim cannot be read.
   */
  def fencesAndPins(): Future[(Set[Long], Vector[Pin])] =
    read().map { case (listed, of) => (listed.fences(of.claims, of.view.epoch), listed.pins) }

  /** Deletes pins, by their names. */
  def deletePins(names: Seq[String]): Future[Unit] = storage.delete(Nil, names.map(new Path(location.epochs, _)))

  /** Deletes obsolete claims, and objects that trials of exclusive creation have left. */
  def deleteObsolete(): Future[Unit] = read().flatMap { case (listed, of) =>
    val obsolete = listed.obsolete(of.claims, of.view.epoch, kept)
    val marks = listed.ended.filter(epoch => obsolete.contains(epoch) || !listed.claimed.contains(epoch))
    val trials = listed.trials.collect { case (epoch, name) if epoch < of.view.epoch => name }
    val names = obsolete.map(_.toString) ++ marks.map(LogLayout.endOfEpoch) ++ trials
    storage.delete(Nil, names.map(new Path(location.epochs, _)))
  }

  /** The listed names, and the state with the claims that were read. */
  private def read(): Future[(ListedClaims, RunState)] =
    for {
      listed <- Claims.list(storage, Some(state.get.view.epoch))
      // Older ones can be deleted, and without exclusive creation none is.
      counting = listed.claimed.takeRight(kept)
      unknown = counting.filterNot(state.get.claims.contains)
      found <- EntryReader.fewAtOnce(unknown)(epoch => Claims.read(storage, listed, epoch).map(of => Some(epoch -> of)))
    } yield (
      listed,
      state.update(of =>
        of.copy(claims = (of.claims ++ found).filter { case (epoch, _) => counting.contains(epoch) })
      )
    )
}

object Claims {
  private val MaxLength = 4096L
  private val EndMark = "ended\n".getBytes(UTF_8)

  /**
   * Marks the run with this claim as ended, without writes under way. Always succeeds: without the mark the claim only stays
   * longer than necessary.
   *
   * If the claim is missing, or is another run's, there is no mark: the checkpoint was deleted, moved or replaced after the end
   * of the query. A mark would create its directory again, or show a run as ended that claims the epoch there.
   */
  private[coordinator] def end(storage: QueryStorage, epoch: Long, claim: Claim): Future[Unit] = {
    implicit val executor: ExecutionContext = storage.runtime.executor
    val path = storage.location.epoch(epoch)
    storage.read(path, Read(path, MaxLength)).flatMap { found =>
      if (!found.exists(Arrays.equals(_, claim.bytes))) Future.unit
      else storage.create(new Path(storage.location.epochs, LogLayout.endOfEpoch(epoch)), EndMark)
    }.transform(_ => Success(()))
  }

  /**
   * Run and host of the newest claim of another run than `own`, for the error of a fenced driver; None if they are unknown. Never
   * fails.
   */
  def newestOther(storage: QueryStorage, own: UUID): Future[Option[(UUID, String)]] = {
    implicit val executor: ExecutionContext = storage.runtime.executor
    def firstIn(listed: ListedClaims, epochs: List[Long]): Future[Option[Claim]] = epochs match {
      case Nil => Future.successful(None)
      case epoch :: older => read(storage, listed, epoch).flatMap {
          case Some(claim) if claim.run != own => Future.successful(Some(claim))
          case _ => firstIn(listed, older)
        }
    }
    list(storage).flatMap(listed => firstIn(listed, listed.claimed.reverse.toList)).map(_.map(of => of.run -> of.host))
      .recover { case _ => None }
  }

  /** @param own the epoch of the run, once it has claimed one */
  private[ownership] def list(storage: QueryStorage, own: Option[Long] = None): Future[ListedClaims] = {
    implicit val executor: ExecutionContext = storage.runtime.executor
    storage.checkpoint.run(ListObjects(storage.location.epochs), storage.timeoutMillis).flatMap(_.asFuture).map {
      objects =>
        val written = objects.iterator.map(of => of.path.getName -> of.writtenMillis).toMap
        val names = objects.iterator.map(_.path.getName).toVector
        val claimedMillis = own.flatMap(epoch => written.get(epoch.toString)).getOrElse(0L)
        ListedClaims(
          objects.iterator.flatMap(of => LogLayout.parseEpoch(of.path.getName).map(_ -> of.length)).toMap,
          names.flatMap(LogLayout.parseEndOfEpoch).toSet,
          names.flatMap(name => LogLayout.parseTrial(name).map(_ -> name)),
          for (name <- names; (batch, seconds) <- LogLayout.parsePin(name)) yield Pin(
            name,
            batch,
            TimeUnit.SECONDS.toMillis(seconds),
            math.max(0L, claimedMillis - written(name))
          )
        )
    }
  }

  private def read(storage: QueryStorage, listed: ListedClaims, epoch: Long): Future[Option[Claim]] = {
    val path = storage.location.epoch(epoch)
    val length = math.min(listed.lengths(epoch), MaxLength).toInt
    storage.read(path, ReadRange(path, 0, length)).map(_.flatMap(Claim.parse))(storage.runtime.executor)
  }
}
