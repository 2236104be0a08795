package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.{Outcome, StorageClient}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.StoredObject

/**
 * Deletes what runs of lower epochs left behind: data files that no commit entry names, unfinished files beside them, and
 * their epochs.
 *
 * To be run once a commit entry of this run stands. Before that a paused predecessor may still commit the batch and name
 * its files; afterwards none of lower epoch can: it would have to create the entry that is there, or to build on one of a
 * higher epoch, which it does not.
 *
 * @param isNamed
 *   whether this run names a data file in a snapshot that no entry holds yet
 */
private[coordinator] final class OrphanSweep(
    location: QueryLocation,
    checkpoint: StorageClient,
    log: StorageClient,
    entries: EntryReader,
    epoch: Long,
    isNamed: String => Boolean,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  /** @return how many objects were deleted */
  def run(): Future[Int] =
    for {
      orphans <- orphanedDataFiles()
      _ <- delete(log, orphans)
      epochs <- lowerEpochs()
      _ <- delete(checkpoint, epochs)
    } yield orphans.size

  private def orphanedDataFiles(): Future[Vector[Path]] = {
    val data = new Path(location.base, LogLayout.DataDirectory)
    for {
      published <- listed(log.listRecursively(data, timeoutMillis))
      unpublished <- listed(log.listUnpublished(data, timeoutMillis))
      others = published.filter(isOfLowerEpoch)
      named <- if (others.isEmpty) Future.successful(Set.empty[String]) else namedFiles()
    } yield others.map(_.path).filterNot(path => named(nameOf(path)) || isNamed(nameOf(path))).toVector ++
      unpublished.filter(isOfLowerEpoch).map(_.path)
  }

  private def isOfLowerEpoch(stored: StoredObject): Boolean =
    LogLayout.parseDataDirectory(stored.path.getParent.getName).exists { case (of, _) => of < epoch }

  private def nameOf(path: Path): String =
    s"${LogLayout.DataDirectory}/${path.getParent.getName}/${path.getName}"

  /** Data files that any entry there is names. An entry that vanishes meanwhile needs nothing. */
  private def namedFiles(): Future[Set[String]] =
    listed(checkpoint.list(location.commits, timeoutMillis)).flatMap { objects =>
      val batches = LogLayout.batchesIn(objects)
      batches.foldLeft(Future.successful(Set.empty[String])) { (before, batch) =>
        before.flatMap(named =>
          entries.read(batch).map {
            case EntryFound.Logged(entry) => named ++ entry.files
            case EntryFound.Plain | EntryFound.Absent => named
          }
        )
      }
    }

  private def lowerEpochs(): Future[Vector[Path]] =
    listed(checkpoint.list(location.epochs, timeoutMillis)).map { objects =>
      objects.map(_.path).filter { path =>
        LogLayout.parseEpoch(path.getName).orElse(LogLayout.parseTrial(path.getName)).exists(_ < epoch)
      }.toVector
    }

  private def listed(answer: Future[Outcome[Seq[StoredObject]]]): Future[Seq[StoredObject]] = answer.flatMap(_.asFuture)

  private def delete(storage: StorageClient, paths: Vector[Path]): Future[Unit] =
    if (paths.isEmpty) Future.unit else storage.delete(paths, timeoutMillis).flatMap(_.asFuture)
}
