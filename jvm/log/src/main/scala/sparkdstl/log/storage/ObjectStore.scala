package sparkdstl.log.storage

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.runtime.Cancellable

/**
 * One attempt at one request to storage.
 *
 * @param result its answer. After a failure it is unknown whether a write took effect, unless [[StorageErrors.isDefinite]]
 * @param cancellation called when no caller waits for the result. The attempt may still take effect, now or later
 */
final class Attempt[+T](val result: Future[T], cancellation: () => Unit = () => ()) extends Cancellable {
  override def cancel(): Unit = cancellation()
}

/**
 * Bytes to be written, in parts that are not copied together.
 *
 * @param parts in order; immutable from here on
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
 * @param bytes its last bytes: all of them, if the object is not longer than what was asked for
 * @param length of the whole object, in bytes
 */
final case class ObjectTail(bytes: Array[Byte], length: Long) {
  def isWhole: Boolean = bytes.length.toLong == length
}

/**
 * An object as a listing shows it.
 *
 * @param length in bytes
 */
final case class StoredObject(path: Path, length: Long)

/** What a storage can do. */
trait StorageTraits {

  /**
   * Whether replacing leaves, at any moment and however late an attempt takes effect, either the old or the new
   * object. Where it does not, a replacement must not be tried again while an earlier attempt may still take effect.
   */
  def replacesAtomically: Boolean

  /** How many objects storage deletes with one request: 1 or more. */
  def deletionPageSize: Int
}

/**
 * Storage, one attempt at one [[StorageOperation]] at a time: no retries, no deadlines, and no call blocks. Objects appear
 * whole or not at all. Directories need not exist. Thread-safe.
 */
trait ObjectStore extends StorageTraits {
  def begin[A](operation: StorageOperation[A]): Attempt[A]
}

/**
 * [[ObjectStore]] for callers that may block: a call returns when storage has answered, may be made from any thread, and
 * fails with an `IOException`. Nothing is retried beyond what the underlying client does. An interrupt ends a call early
 * where the client allows it and is never swallowed. Paths are absolute.
 */
trait LogStorage extends StorageTraits {
  def perform[A](operation: StorageOperation[A]): A
}
