// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.runtime.Cancellable

/**
 * One attempt at one request to storage. After a failure it is unknown whether a write took effect, unless
 * [[StorageErrors.isDefinite]]. A cancelled attempt may still take effect.
 */
final class Attempt[+T](val result: Future[T], cancellation: () => Unit = () => ()) extends Cancellable {
  override def cancel(): Unit = cancellation()
}

/** Bytes to write, in parts, so that they need not be copied. The parts must not be changed. */
final case class Payload(parts: Vector[Array[Byte]]) {
  val length: Long = parts.iterator.map(_.length.toLong).sum

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

/** The last bytes of an object, or all bytes of a short one, and the `length` of the whole object. */
final case class ObjectTail(bytes: Array[Byte], length: Long) {
  def isWhole: Boolean = bytes.length.toLong == length
}

/**
 * An object in a listing: its length in bytes, and when it was written, in milliseconds by the storage's clock; or a directory
 * without any, which only file systems have.
 */
final case class StoredObject(path: Path, length: Long, writtenMillis: Long, isEmptyDirectory: Boolean = false) {

  /** Whether it is a file that was being written, or a writer's remains, and no object. */
  def isUnpublished: Boolean = TemporaryNames.isTemporary(path)
}

/** The capabilities of a storage. */
trait StorageTraits {

  /**
   * Whether a replacement always leaves either the old or the new object, even if an attempt takes effect late. If it does not,
   * a replacement must not be retried while an earlier attempt may still take effect.
   */
  def replacesAtomically: Boolean

  /** The number of objects, 1 or more, that one request deletes. */
  def deletionPageSize: Int
}

/**
 * Storage that makes single attempts at a [[StorageOperation]], without retries or deadlines. Objects become visible
 * atomically. Directories need not exist. Thread-safe and non-blocking.
 */
trait ObjectStore extends StorageTraits {
  def begin[A](operation: StorageOperation[A]): Attempt[A]
}

/**
 * A blocking [[ObjectStore]]: a call returns when storage has answered, and fails with an `IOException`. Only the underlying
 * client retries. An interrupt ends a call early if the client allows it, and is never swallowed. Paths are absolute.
 * Thread-safe.
 */
trait LogStorage extends StorageTraits {
  def perform[A](operation: StorageOperation[A]): A
}
