// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.{LogLayout, QueryLocation}
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.{Payload, StorageOperation, StoredObject}
import sparkdstl.log.storage.StorageOperation.{ListObjects, ListRecursively}

/** The storage of one query: `checkpoint` holds commit entries and claims, `log` holds data files. */
final case class QueryStorage(
    location: QueryLocation,
    checkpoint: StorageClient,
    log: StorageClient,
    timeoutMillis: Long
) extends AutoCloseable {
  private implicit def executor: ExecutionContext = runtime.executor

  def runtime: ProtocolRuntime = checkpoint.requests.runtime

  /** Reads from the checkpoint. Without an answer the read fails with DSTL_READ_FAILED, which names `path`. */
  def read[A](path: Path, operation: StorageOperation[A]): Future[A] =
    checkpoint.run(operation, timeoutMillis).flatMap(_.orElseFail(ProtocolErrors.unreadable(path, _)))

  def entries(): Future[Seq[StoredObject]] = read(location.commits, ListObjects(location.commits))

  /** Batches of the commit entries, in ascending order. */
  def batches(): Future[Vector[Long]] = entries().map(LogLayout.batchesIn)

  /** The files of state; it lists all below a directory that may have tens of thousands. */
  def stateFiles(): Future[Seq[Path]] =
    read(location.state, ListRecursively(location.state)).map(_.filterNot(_.isEmptyDirectory).map(_.path))

  /** The data files; and what is none: unpublished files and empty directories. */
  def dataFiles(): Future[(Seq[StoredObject], Seq[StoredObject])] = {
    val directory = location.file(LogLayout.DataDirectory)
    log.run(ListRecursively(directory), timeoutMillis).flatMap(_.asFuture).map(_.partition(of =>
      !of.isUnpublished && !of.isEmptyDirectory
    ))
  }

  /** Creates an object of the checkpoint exclusively. An object with the same content counts as created. */
  def create(path: Path, content: Array[Byte]): Future[Outcome[Creation]] =
    checkpoint.create(path, Payload(content), timeoutMillis, content.length)(found =>
      java.util.Arrays.equals(found.bytes, content)
    )

  /** Deletes data files before objects of the checkpoint: if it fails in between, a commit entry still names its files. */
  def delete(dataFiles: Seq[Path], ofCheckpoint: Seq[Path]): Future[Unit] =
    log.delete(dataFiles, timeoutMillis).flatMap(_.asFuture)
      .flatMap(_ => checkpoint.delete(ofCheckpoint, timeoutMillis)).flatMap(_.asFuture)

  override def close(): Unit = Seq(checkpoint, log).foreach(_.requests.close())

  /** Completes when no write is under way, nor an attempt at a write that has its outcome. */
  def whenQuiet: Future[Unit] = whenBoth(_.whenQuiet)

  /** Completes when no write may take effect any more, as far as a client can tell; see [[Requests.whenSettled]]. */
  def whenSettled: Future[Unit] = whenBoth(_.whenSettled)

  private def whenBoth(of: Requests => Future[Unit]): Future[Unit] =
    Future.sequence(Seq(checkpoint, log).map(client => of(client.requests))).map(_ => ())
}
