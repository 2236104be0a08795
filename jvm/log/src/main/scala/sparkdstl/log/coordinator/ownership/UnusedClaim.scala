package sparkdstl.log.coordinator.ownership

import scala.concurrent.{ExecutionContext, Future}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.StorageClient
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.StoredObject
import sparkdstl.log.storage.StorageOperation.{ListObjects, ListRecursively, ListUnpublished}

/**
 * Whether the query for which a base path is marked has left nothing there, as after a start with a wrong base path.
 *
 * Only says so, and takes nothing over: a run that has just begun, or that hands all its changes to the driver, leaves
 * nothing either, and deleting what it writes next would lose state. So two things must hold, by what storage answers:
 * there is no data file, and no batch of that query was committed last with this base path. What is not known, or not
 * answered, speaks for the claim.
 */
private[ownership] final class UnusedClaim(
    location: QueryLocation,
    storageOf: Path => StorageClient,
    log: StorageClient,
    timeoutMillis: Long,
    runtime: ProtocolRuntime
) {
  import UnusedClaim._
  private implicit val executor: ExecutionContext = runtime.executor

  /**
   * What shows that nothing was left, in words; None if something was, or that cannot be told. Never fails.
   *
   * @param checkpoint
   *   where the checkpoint of the marked query was when it last began a run
   * @param isThere
   *   whether it is there still
   */
  def shownBy(checkpoint: Path, isThere: Boolean): Future[Option[String]] =
    dataFiles().flatMap { files =>
      if (files.nonEmpty) Future.successful(None)
      else if (!isThere) Future.successful(Some(s"its checkpoint is not at $checkpoint any more"))
      else committedElsewhere(checkpoint)
    }.recover { case NonFatal(_) => None }

  private def dataFiles(): Future[Seq[StoredObject]] = {
    val directory = location.file(LogLayout.DataDirectory)
    for {
      published <- log.run(ListRecursively(directory), timeoutMillis).flatMap(_.asFuture)
      unpublished <- log.run(ListUnpublished(directory), timeoutMillis).flatMap(_.asFuture)
    } yield published ++ unpublished
  }

  private def committedElsewhere(checkpoint: Path): Future[Option[String]] = {
    val there = location.copy(root = checkpoint)
    val storage = storageOf(checkpoint)
    val entries = new EntryReader(there, storage, timeoutMillis, FetchLength, runtime)
    storage.run(
      ListObjects(there.commits),
      timeoutMillis
    ).flatMap(_.asFuture).map(LogLayout.batchesIn(_).lastOption).flatMap {
      case None => Future.successful(Some("it has committed no batch"))
      case Some(newest) => entries.read(newest).map {
          case EntryFound.Logged(entry) if !entry.index.base.exists(isThis) =>
            Some(s"it has committed batch $newest with another log directory")
          case _ => None
        }
    }
  }

  /** One path may be written in several ways, so schemes and hosts do not tell two places apart. */
  private def isThis(base: String): Boolean = new Path(base).toUri.getPath == location.base.toUri.getPath
}

private object UnusedClaim {
  private val FetchLength = 64 * 1024
}
