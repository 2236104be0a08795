package sparkdstl.log.storage

import org.apache.hadoop.fs.Path

/**
 * [[ObjectStore]] for those who may block: every call returns when storage has answered, may be made from any thread,
 * and fails with an `IOException`. Nothing is retried here beyond what the underlying client does. An interrupt ends a
 * call early where the client allows it and is never swallowed. Paths are absolute.
 *
 * What each call promises is said at [[ObjectStore]].
 */
trait LogStorage {
  def put(path: Path, content: Payload): Unit
  def replace(path: Path, content: Payload): Unit
  def replacesAtomically: Boolean
  def create(path: Path, content: Payload): Unit
  def createsExclusively(path: Path): Boolean
  def read(path: Path, maxLength: Long): Array[Byte]
  def readTail(path: Path, maxLength: Int): ObjectTail
  def readRange(path: Path, offset: Long, length: Int): Array[Byte]
  def list(directory: Path): Seq[StoredObject]
  def listRecursively(directory: Path): Seq[StoredObject]
  def listUnpublished(directory: Path): Seq[StoredObject]
  def delete(paths: Seq[Path]): Unit
  def deletionPageSize: Int
}

/**
 * An object as a listing shows it.
 *
 * @param length
 *   in bytes
 * @param modifiedMillis
 *   when it was published, in milliseconds since 1970 by the clock of storage
 */
final case class StoredObject(path: Path, length: Long, modifiedMillis: Long)
