package sparkdstl.log.coordinator.ownership

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.coordinator.view.LogView
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.{Creation, StorageClient}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.{ObjectTail, Payload, StoredObject}
import sparkdstl.log.storage.StorageOperation.ListObjects

/**
 * What a run has found and claimed.
 *
 * @param newest
 *   the newest commit entry
 * @param exclusive
 *   whether storage creates objects exclusively, as a trial has shown
 */
private[coordinator] final case class StartedRun(view: LogView, newest: EntryFound, exclusive: Boolean) {

  /** The run's number among all runs on the checkpoint. */
  def epoch: Long = view.epoch
}

/**
 * Begins a run: claims an epoch, and reads what is committed. Changes nothing that another run relies on, so it can be done
 * while one is at work.
 *
 * The claim names the batch that the run would commit first, and holds only if a listing that was begun after it still ends with
 * the batch before: otherwise another run has committed meanwhile, and the next epoch is claimed. See [[Claim]].
 */
private[coordinator] final class RunStart(
    location: QueryLocation,
    checkpoint: StorageClient,
    entries: EntryReader,
    run: UUID,
    host: String,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  import RunStart._
  private implicit val executor: ExecutionContext = runtime.executor

  def begin(): Future[StartedRun] = {
    val committed = listOf(location.commits)
    val epochs = Claims.list(location, checkpoint, timeoutMillis).flatMap(_.orElseFail(unusable))
    for {
      last <- committed.map(LogLayout.batchesIn(_).lastOption)
      claims <- epochs
      started <- claimAfter(last, claims, Tries)
    } yield started
  }

  /** Claims an epoch for a run that follows the entry of batch `last`. */
  private def claimAfter(last: Option[Long], claims: ListedClaims, triesLeft: Int): Future[StartedRun] =
    last.fold(Future.successful[EntryFound](EntryFound.Absent))(entries.read).flatMap { newest =>
      val follows = newest match {
        case EntryFound.Logged(entry) => entry.index.writer.epoch
        case EntryFound.Plain => Claim.AfterStockSpark
        case EntryFound.Absent => Claim.AfterNothing
      }
      val claim = Claim(run, host, last.getOrElse(-1L) + 1, follows)
      create(math.max(follows, claims.claimed.maxOption.getOrElse(0L)) + 1, claim)
        .flatMap(look(_, last, newest, claims, triesLeft))
    }

  /** Creates the claim under the first free epoch from `number` on. */
  private def create(number: Long, claim: Claim): Future[Long] =
    checkpoint.create(location.epoch(number), Payload(claim.bytes), timeoutMillis)(isThis(claim))
      .flatMap(_.orElseFail(unusable)).flatMap {
        case _: Creation.Taken => create(number + 1, claim)
        case Creation.Ours => Future.successful(number)
      }

  /** The claim holds if the newest entry is still the one that it follows. */
  private def look(
      epoch: Long,
      last: Option[Long],
      newest: EntryFound,
      claims: ListedClaims,
      triesLeft: Int
  ): Future[StartedRun] = {
    val committed = listOf(location.commits)
    val trial = checkpoint.createsExclusively(location.trial(epoch, _), timeoutMillis).flatMap(_.orElseFail(unusable))
    for {
      objects <- committed
      exclusive <- trial
      now = LogLayout.batchesIn(objects).lastOption
      started <-
        if (now == last)
          Future.successful(StartedRun(LogView.start(epoch, LogLayout.bytesIn(objects), newest), newest, exclusive))
        else if (triesLeft == 0) Future.failed(ProtocolErrors.fenced(location.entry(now.getOrElse(0L)), None))
        else for {
          _ <- Claims.end(location, checkpoint, epoch, timeoutMillis)
          again <- claimAfter(now, claims.copy(claimed = claims.claimed :+ epoch), triesLeft - 1)
        } yield again
    } yield started
  }

  private def unusable(error: Throwable): Throwable = ProtocolErrors.unusableCheckpoint(location.epochs, error)

  private def isThis(claim: Claim)(found: ObjectTail): Boolean = java.util.Arrays.equals(found.bytes, claim.bytes)

  private def listOf(directory: Path): Future[Seq[StoredObject]] =
    checkpoint.run(ListObjects(directory), timeoutMillis).flatMap(_.orElseFail(ProtocolErrors.unreadable(directory, _)))
}

private object RunStart {

  /** How often a run claims anew because another one has committed a batch meanwhile, before it ends as fenced. */
  private val Tries = 10
}
