// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.ownership

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.coordinator.view.{Claim, LogView}
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.LogLayout
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.{Creation, QueryStorage}
import sparkdstl.log.storage.StorageOperation.ListObjects
import sparkdstl.log.storage.StoredObject

/** The listings of `commits` and `offsets` after a claim, which decide the run's next batch. */
final case class ListedBatches(commits: Seq[StoredObject], offsets: Seq[StoredObject]) {

  /** Spark reads the newest two entries of `offsets`, and runs a batch again that it takes for the newest. */
  private[coordinator] def missingOffsets(committed: Long): Option[Long] = {
    val begun = LogLayout.batchesIn(offsets)
    Seq(committed, begun.lastOption.getOrElse(-1L) - 1).find(batch => batch >= 0 && !begun.contains(batch))
  }
}

/** A claimed epoch by its claim, with the newest commit entry, and whether storage creates exclusively, according to a trial. */
private[coordinator] final case class ClaimedEpoch(
    view: LogView,
    claim: Claim,
    newest: EntryFound,
    exclusive: Boolean,
    listed: ListedBatches
)

/**
 * Claims an epoch for a run, and lists the commit entries. Changes no object that another run relies on, so it is safe while
 * another run is at work.
 *
 * The claim names the first batch that the run would commit. It is valid only if a listing that begins after it still ends with
 * the batch before; otherwise another run has committed, and the claimer claims the next epoch. See [[Claim]].
 */
private[coordinator] final class EpochClaimer(storage: QueryStorage, entries: EntryReader, run: UUID, host: String) {

  /** The number of repeated claims after commits of other runs, before the run ends as fenced. */
  private final val Tries = 10

  import storage.{checkpoint, location, timeoutMillis}
  private implicit val executor: ExecutionContext = storage.runtime.executor

  def claim(): Future[ClaimedEpoch] = {
    val committed = storage.entries()
    val epochs = Claims.list(storage).transform(identity, unusable)
    for {
      commits <- committed
      claims <- epochs
      claimed <- claimAfter(commits, claims.claimed.lastOption.getOrElse(0L), Tries)
    } yield claimed
  }

  /** Claims an epoch above `highest` for a run that follows the newest of these entries. The trial runs beside the claim. */
  private def claimAfter(commits: Seq[StoredObject], highest: Long, triesLeft: Int): Future[ClaimedEpoch] = {
    val lengths = LogLayout.bytesIn(commits)
    val last = lengths.keysIterator.maxOption
    val found = last.map(batch => entries.read(batch, lengths.get(batch)))
    found.getOrElse(Future.successful(EntryFound.Absent)).flatMap { newest =>
      val follows = newest match {
        case EntryFound.Logged(entry) => entry.index.writer.epoch
        case EntryFound.Plain => Claim.AfterStockSpark
        case EntryFound.Absent => Claim.AfterNothing
      }
      val claim = Claim(run, host, last.getOrElse(-1L) + 1, follows)
      val first = math.max(follows, highest) + 1
      val created = create(first, claim)
      val trial = checkpoint.createsExclusively(location.trial(first, _), timeoutMillis).flatMap(_.orElseFail(unusable))
      created.flatMap(check(_, claim, last, newest, trial, triesLeft))
    }
  }

  /** Creates the claim under the first free epoch from `number` on. */
  private def create(number: Long, claim: Claim): Future[Long] =
    storage.create(location.epoch(number), claim.bytes).flatMap(_.orElseFail(unusable)).flatMap {
      case _: Creation.Taken => create(number + 1, claim)
      case Creation.Ours => Future.successful(number)
    }

  /** Accepts the claim if the newest entry is still the one that it follows. */
  private def check(
      epoch: Long,
      claim: Claim,
      last: Option[Long],
      newest: EntryFound,
      trial: Future[Boolean],
      triesLeft: Int
  ): Future[ClaimedEpoch] = {
    val committed = storage.entries()
    val begun = storage.read(location.offsets, ListObjects(location.offsets))
    val looked = for {
      commits <- committed
      offsets <- begun
      exclusive <- trial
    } yield (commits, offsets, exclusive)
    // The error does not wait for the mark, because storage may not answer.
    looked.failed.foreach(_ => Claims.end(storage, epoch, claim))
    for {
      (commits, offsets, exclusive) <- looked
      now = LogLayout.batchesIn(commits).lastOption
      listed = ListedBatches(commits, offsets)
      sizes = LogLayout.bytesIn(commits)
      claimed <-
        if (now == last)
          Future.successful(ClaimedEpoch(LogView.start(epoch, sizes, newest), claim, newest, exclusive, listed))
        else Claims.end(storage, epoch, claim).flatMap { _ =>
          if (triesLeft == 0) Future.failed(ProtocolErrors.fenced(location.entry(now.getOrElse(0L)), None))
          else claimAfter(commits, epoch, triesLeft - 1)
        }
    } yield claimed
  }

  private def unusable(error: Throwable): Throwable = ProtocolErrors.unusableCheckpoint(location.epochs, error)
}
