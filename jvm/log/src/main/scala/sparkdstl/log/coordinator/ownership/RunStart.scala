package sparkdstl.log.coordinator.ownership

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.{Creation, StorageClient}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.{ObjectTail, Payload, StoredObject}

/**
 * What a run finds and claims at its start.
 *
 * @param entries
 *   batches that have a commit entry, in ascending order
 * @param entryBytes
 *   of each of these
 * @param newest
 *   the newest of these
 * @param epoch
 *   the run's number among all runs on the checkpoint
 * @param exclusive
 *   whether storage creates objects exclusively, as a try has shown
 * @param atNanos
 *   when the run began to look, by the runtime's timer
 */
private[coordinator] final case class StartOfRun(
    entries: Vector[Long],
    entryBytes: Map[Long, Long],
    newest: EntryFound,
    epoch: Long,
    exclusive: Boolean,
    atNanos: Long
)

/**
 * Begins a run: reads what is committed and claims an epoch. Changes nothing that another run relies on, so it can be
 * done while one is at work.
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
  private implicit val executor: ExecutionContext = runtime.executor

  def begin(): Future[StartOfRun] = {
    val atNanos = runtime.timer.nowNanos
    for {
      committed <- listOf(location.commits)
      batches = LogLayout.batchesIn(committed)
      newest <- batches.lastOption.fold(Future.successful[EntryFound](EntryFound.Absent))(entries.read)
      claimed <- listOf(location.epochs).map(_.flatMap(o => LogLayout.parseEpoch(o.path.getName)))
      epoch <- claim((claimed.toVector ++ epochOf(newest)).maxOption.getOrElse(0L) + 1)
      exclusive <- probe(epoch)
    } yield StartOfRun(batches, LogLayout.bytesIn(committed), newest, epoch, exclusive, atNanos)
  }

  private def epochOf(found: EntryFound): Option[Long] = found match {
    case EntryFound.Logged(entry) => Some(entry.index.writer.epoch)
    case _ => None
  }

  /** Claims the first free number from `number` on. */
  private def claim(number: Long): Future[Long] =
    checkpoint.create(location.epoch(number), Payload(mark), timeoutMillis)(isOurs)
      .flatMap(_.orElseFail(unusable)).flatMap {
        case Creation.Ours => Future.successful(number)
        case _: Creation.Taken => claim(number + 1)
      }

  private def probe(epoch: Long): Future[Boolean] =
    checkpoint.createsExclusively(location.trial(epoch, _), timeoutMillis).flatMap(_.orElseFail(unusable))

  private def unusable(error: Throwable): Throwable = ProtocolErrors.unusableCheckpoint(location.epochs, error)

  private val mark: Array[Byte] = NewestEpoch.mark(run, host)

  private def isOurs(found: ObjectTail): Boolean = java.util.Arrays.equals(found.bytes, mark)

  private def listOf(directory: Path): Future[Seq[StoredObject]] =
    checkpoint.list(directory, timeoutMillis).flatMap(_.orElseFail(ProtocolErrors.unreadable(directory, _)))
}
