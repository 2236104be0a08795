package sparkdstl.log.storage

import org.apache.hadoop.fs.Path

/**
 * Where the log's objects live. Objects appear whole or not at all.
 *
 * Every call blocks until storage has answered, may be made from any thread, and fails with an `IOException`. Nothing
 * is retried here beyond what the underlying client does: retries and hedges belong to [[sparkdstl.log.retry]]. An
 * interrupt ends a call early where the client allows it and is never swallowed. Paths are absolute.
 */
trait LogStorage {

  /**
   * Publishes `content` at `path`, replacing what is there. Repeating the call with the same content is harmless, also
   * while an earlier call is still under way. After an error the object may or may not be there: the reply, not the
   * write, may have been lost.
   */
  def put(path: Path, content: Array[Byte]): Unit

  /**
   * Publishes `content` at `path` if nothing is there: of several callers at most one succeeds.
   *
   * A caller that sees a conflict may still be the one that wrote the object, when a client below has repeated a
   * request whose reply was lost. Content that names its writer tells, when read back.
   *
   * @throws org.apache.hadoop.fs.FileAlreadyExistsException
   *   when something is there
   */
  def putIfAbsent(path: Path, content: Array[Byte]): Unit

  /**
   * The whole object. An object longer than `maxLength` bytes is refused before any of it is read.
   *
   * @throws java.io.FileNotFoundException
   *   when nothing is there
   */
  def read(path: Path, maxLength: Long): Array[Byte]

  /**
   * Exactly `length` bytes from `offset` on.
   *
   * @throws java.io.EOFException
   *   when the object ends before
   * @throws java.io.FileNotFoundException
   *   when nothing is there
   */
  def readRange(path: Path, offset: Long, length: Int): Array[Byte]

  /**
   * The object's length in bytes.
   *
   * @throws java.io.FileNotFoundException
   *   when nothing is there
   */
  def length(path: Path): Long

  def exists(path: Path): Boolean

  /** The objects directly in `directory`, in no particular order; none when the directory is missing. */
  def list(directory: Path): Seq[StoredObject]

  /** The objects in `directory` and below, in no particular order; none when the directory is missing. */
  def listRecursively(directory: Path): Seq[StoredObject]

  /**
   * What writers have begun but not published in `directory` and below: what dead ones left behind, and what live ones
   * are at. The age of an object tells the two apart.
   */
  def listUnpublished(directory: Path): Seq[StoredObject]

  /**
   * Deletes objects, in as few requests as storage allows. Missing ones are fine. Tries all before it fails with the
   * first error, which carries the others as suppressed ones.
   */
  def delete(paths: Seq[Path]): Unit
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
