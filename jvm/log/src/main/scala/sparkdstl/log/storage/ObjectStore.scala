package sparkdstl.log.storage

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.runtime.Cancellable

/**
 * One attempt at one request to storage.
 *
 * @param result
 *   what came of it. A failure says nothing about whether a write took effect, unless
 *   [[StorageErrors.isDefinite]] says that the error is storage's own answer
 * @param cancel
 *   says that nobody waits for the result any more. The attempt may take effect all the same, now or later
 */
final class Attempt[+T](val result: Future[T], cancellation: () => Unit) extends Cancellable {
  override def cancel(): Unit = cancellation()
}

object Attempt {

  /** An attempt that cannot be cancelled. */
  def apply[T](result: Future[T]): Attempt[T] = new Attempt(result, () => ())
}

/**
 * Bytes to be written, in parts that are not copied together.
 *
 * @param parts
 *   in order; not to be changed by anybody any more
 */
final case class Payload(parts: Vector[Array[Byte]]) {
  val length: Long = parts.iterator.map(_.length.toLong).sum

  /** All parts as one array: a copy. */
  def toArray: Array[Byte] = {
    val all = new Array[Byte](Math.toIntExact(length))
    parts.foldLeft(0) { (at, part) =>
      System.arraycopy(part, 0, all, at, part.length)
      at + part.length
    }
    all
  }
}

object Payload {
  def apply(bytes: Array[Byte]): Payload = Payload(Vector(bytes))
}

/**
 * The end of an object.
 *
 * @param bytes
 *   its last bytes: all of them, if the object is not longer than what was asked for
 * @param length
 *   of the whole object, in bytes
 */
final case class ObjectTail(bytes: Array[Byte], length: Long) {
  def isWhole: Boolean = bytes.length.toLong == length
}

/**
 * What the log needs of storage, one attempt at a time: no retries, no deadlines, and no call blocks. Objects appear
 * whole or not at all. Directories need not exist. Thread-safe.
 */
trait ObjectStore {

  /** Publishes at a name that nobody else ever uses, so that it does not matter how often or how late it is done. */
  def put(path: Path, content: Payload): Attempt[Unit]

  /** Publishes, replacing what is there. Whether a late attempt can do harm, [[replacesAtomically]] says. */
  def replace(path: Path, content: Payload): Attempt[Unit]

  /**
   * Whether replacing leaves, at any moment and however late an attempt takes effect, either the old or the new
   * object. Where it does not, a replacement must not be tried again while an earlier attempt may still take effect.
   */
  def replacesAtomically: Boolean

  /**
   * Publishes if nothing is there, else fails with Hadoop's `FileAlreadyExistsException`. A caller that sees that may
   * be the one who wrote the object, when a client below has repeated a request whose reply was lost: only the content
   * tells.
   */
  def create(path: Path, content: Payload): Attempt[Unit]

  /**
   * Whether of two creates only one succeeds, tried at a name that nobody else uses: two are begun before either of them
   * ends. Of two that follow each other the second is also refused by a client that looks first and then overwrites. An
   * object may be there afterwards.
   */
  def createsExclusively(path: Path): Attempt[Boolean]

  /** The whole object. Fails with `FileNotFoundException` when nothing is there, and when it is longer than allowed. */
  def read(path: Path, maxLength: Long): Attempt[Array[Byte]]

  /** The last `maxLength` bytes, or all. Fails with `FileNotFoundException` when nothing is there. */
  def readTail(path: Path, maxLength: Int): Attempt[ObjectTail]

  /** Exactly `length` bytes; `EOFException` when the object ends before, `FileNotFoundException` when there is none. */
  def readRange(path: Path, offset: Long, length: Int): Attempt[Array[Byte]]

  /** The objects directly in `directory`, in no particular order; none when the directory is missing. */
  def list(directory: Path): Attempt[Seq[StoredObject]]

  /** The objects in `directory` and below, in no particular order; none when the directory is missing. */
  def listRecursively(directory: Path): Attempt[Seq[StoredObject]]

  /** What writers have begun but not published in `directory` and below. */
  def listUnpublished(directory: Path): Attempt[Seq[StoredObject]]

  /** Deletes objects, in as few requests as storage allows; missing ones are fine. Tries all before it fails. */
  def delete(paths: Seq[Path]): Attempt[Unit]

  /** How many objects storage deletes with one request: 1 or more. */
  def deletionPageSize: Int
}
