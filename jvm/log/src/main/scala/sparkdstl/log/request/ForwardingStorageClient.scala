package sparkdstl.log.request

import java.util.UUID

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.storage.{ObjectTail, Payload, StoredObject}

/** A client that does what another does, to be changed in parts. */
class ForwardingStorageClient(to: StorageClient) extends StorageClient {
  override def put(path: Path, content: Payload, timeoutMillis: Long)(attemptEnded: () => Unit): Future[Outcome[Unit]] =
    to.put(path, content, timeoutMillis)(attemptEnded)
  override def replace(path: Path, content: Payload, timeoutMillis: Long): Future[Outcome[Unit]] =
    to.replace(path, content, timeoutMillis)
  override def create(path: Path, content: Payload, timeoutMillis: Long)(
      isOurs: ObjectTail => Boolean
  ): Future[Outcome[Creation]] = to.create(path, content, timeoutMillis)(isOurs)
  override def createsExclusively(pathOf: UUID => Path, timeoutMillis: Long): Future[Outcome[Boolean]] =
    to.createsExclusively(pathOf, timeoutMillis)
  override def read(path: Path, maxLength: Long, timeoutMillis: Long): Future[Outcome[Option[Array[Byte]]]] =
    to.read(path, maxLength, timeoutMillis)
  override def readTail(path: Path, maxLength: Int, timeoutMillis: Long): Future[Outcome[Option[ObjectTail]]] =
    to.readTail(path, maxLength, timeoutMillis)
  override def readRange(
      path: Path,
      offset: Long,
      length: Int,
      timeoutMillis: Long
  ): Future[Outcome[Option[Array[Byte]]]] = to.readRange(path, offset, length, timeoutMillis)
  override def list(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]] =
    to.list(directory, timeoutMillis)
  override def listRecursively(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]] =
    to.listRecursively(directory, timeoutMillis)
  override def listUnpublished(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]] =
    to.listUnpublished(directory, timeoutMillis)
  override def delete(paths: Seq[Path], timeoutMillis: Long): Future[Outcome[Unit]] = to.delete(paths, timeoutMillis)
}
