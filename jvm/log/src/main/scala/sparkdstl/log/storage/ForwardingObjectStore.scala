package sparkdstl.log.storage

import org.apache.hadoop.fs.Path

/** A store that does what another does, to be changed in parts. */
class ForwardingObjectStore(to: ObjectStore) extends ObjectStore {
  override def put(path: Path, content: Payload): Attempt[Unit] = to.put(path, content)
  override def replace(path: Path, content: Payload): Attempt[Unit] = to.replace(path, content)
  override def replacesAtomically: Boolean = to.replacesAtomically
  override def create(path: Path, content: Payload): Attempt[Unit] = to.create(path, content)
  override def createsExclusively(path: Path): Attempt[Boolean] = to.createsExclusively(path)
  override def read(path: Path, maxLength: Long): Attempt[Array[Byte]] = to.read(path, maxLength)
  override def readTail(path: Path, maxLength: Int): Attempt[ObjectTail] = to.readTail(path, maxLength)
  override def readRange(path: Path, offset: Long, length: Int): Attempt[Array[Byte]] =
    to.readRange(path, offset, length)
  override def list(directory: Path): Attempt[Seq[StoredObject]] = to.list(directory)
  override def listRecursively(directory: Path): Attempt[Seq[StoredObject]] = to.listRecursively(directory)
  override def listUnpublished(directory: Path): Attempt[Seq[StoredObject]] = to.listUnpublished(directory)
  override def delete(paths: Seq[Path]): Attempt[Unit] = to.delete(paths)
  override def deletionPageSize: Int = to.deletionPageSize
}
