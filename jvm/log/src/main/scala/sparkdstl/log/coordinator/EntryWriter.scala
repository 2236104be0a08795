package sparkdstl.log.coordinator

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.error.{FencedException, ProtocolErrors}
import sparkdstl.log.format.{CommitEntry, EncodedEntry, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.{Creation, Outcome, StorageClient}
import sparkdstl.log.runtime.ProtocolRuntime

/**
 * Creates a commit entry: the one write that decides whose batch it is.
 *
 * @param exclusive
 *   whether storage creates exclusively; where it does not, entries are looked at before and after
 */
private[coordinator] final class EntryWriter(
    location: QueryLocation,
    checkpoint: StorageClient,
    entries: EntryReader,
    exclusive: Boolean,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  /**
   * Creates the entry of `batch`. A future that fails with DSTL_COMMIT_UNKNOWN means that it is unknown whether the entry counts;
   * with [[sparkdstl.log.error.FencedException]], that it does not: another driver's batches do. With anything else the entry
   * does not exist and never will.
   *
   * @param previous
   *   the entry that this one is built on
   */
  def write(batch: Long, entry: EncodedEntry, previous: Option[UUID], timeoutMillis: Long): Future[Unit] =
    if (exclusive) create(batch, entry, timeoutMillis)
    else for {
      _ <- refuseIfReplaced(batch, previous)
      _ <- create(batch, entry, timeoutMillis)
      _ <- lookAgain(batch, entry, timeoutMillis)
    } yield ()

  /** Once the entry is there, an error means that it is unknown whether it counts. */
  private def lookAgain(batch: Long, entry: EncodedEntry, timeoutMillis: Long): Future[Unit] =
    refuseIfReplaced(batch + 1, entry.index.link.map(_.entry)).recoverWith {
      case fenced: FencedException => Future.failed(fenced)
      case error => Future.failed(ProtocolErrors.commitUnknown(location.entry(batch), timeoutMillis, error))
    }

  private def create(batch: Long, entry: EncodedEntry, timeoutMillis: Long): Future[Unit] = {
    val path = location.entry(batch)
    val id = entry.index.link.map(_.entry)
    checkpoint.create(path, entry.payload, timeoutMillis)(tail => CommitEntry.entryId(path, tail) == id).flatMap {
      case Outcome.Done(Creation.Ours) => Future.unit
      case Outcome.Done(_: Creation.Taken) =>
        writerOf(batch).flatMap(other => Future.failed(ProtocolErrors.fenced(path, other)))
      case Outcome.Failed(error) => Future.failed(ProtocolErrors.commitFailed(path, error))
      case Outcome.Unknown(error) => Future.failed(ProtocolErrors.commitUnknown(path, timeoutMillis, error))
    }
  }

  /** Fails unless the entry below `batch` is the one that we know. */
  private def refuseIfReplaced(batch: Long, known: Option[UUID]): Future[Unit] =
    if (known.isEmpty) Future.unit
    else entries.read(batch - 1).flatMap {
      case EntryFound.Logged(entry) if entry.index.link.map(_.entry) == known => Future.unit
      case EntryFound.Logged(entry) =>
        val other = entry.index.writer
        Future.failed(ProtocolErrors.fenced(location.entry(batch - 1), Some(other.run -> other.host)))
      case _ => Future.failed(ProtocolErrors.fenced(location.entry(batch - 1), None))
    }

  private def writerOf(batch: Long): Future[Option[(UUID, String)]] =
    entries.read(batch).map {
      case EntryFound.Logged(entry) => Some(entry.index.writer.run -> entry.index.writer.host)
      case _ => None
    }.recover { case _ => None }
}
