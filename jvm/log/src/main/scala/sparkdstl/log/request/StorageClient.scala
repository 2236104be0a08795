package sparkdstl.log.request

import java.util.UUID

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.storage.{ObjectTail, Payload, StoredObject}

/** What an exclusive create found. */
sealed trait Creation

object Creation {

  /** The object is there, and it is ours: this create made it, now or in an earlier attempt. */
  case object Ours extends Creation

  /**
   * Somebody else's object is there.
   *
   * @param found
   *   its last bytes, or all
   */
  final case class Taken(found: ObjectTail) extends Creation
}

/**
 * Storage as the protocol asks it: every call is a request with a deadline, attempts, hedges and retries
 * ([[Requests]]), and tells its [[Outcome]]. No future of these fails.
 *
 * `timeoutMillis` is how long the caller is prepared to wait; errors are retried until then.
 */
trait StorageClient {

  /**
   * Puts content by a name that is nobody else's.
   *
   * @param attemptEnded
   *   called when an attempt has ended, also one that ends after the outcome: it may have written again what was deleted
   *   meanwhile
   */
  def put(path: Path, content: Payload, timeoutMillis: Long)(attemptEnded: () => Unit): Future[Outcome[Unit]]

  /** Replaces; see [[sparkdstl.log.storage.ObjectStore.replacesAtomically]] for when it is tried more than once. */
  def replace(path: Path, content: Payload, timeoutMillis: Long): Future[Outcome[Unit]]

  /**
   * Creates exclusively. An attempt that finds an object there reads it back (retried like any read); whether that is
   * ours, `isOurs` says of its last 64 KiB, or all if it is not longer.
   */
  def create(
      path: Path,
      content: Payload,
      timeoutMillis: Long
  )(isOurs: ObjectTail => Boolean): Future[Outcome[Creation]]

  /**
   * Whether storage creates exclusively: tries it ([[sparkdstl.log.storage.ObjectStore.createsExclusively]]) at a new
   * path in each attempt, and has what it wrote deleted afterwards without waiting for that.
   *
   * @param pathOf
   *   a path of a random name
   */
  def createsExclusively(pathOf: UUID => Path, timeoutMillis: Long): Future[Outcome[Boolean]]

  /** None when there is nothing. */
  def read(path: Path, maxLength: Long, timeoutMillis: Long): Future[Outcome[Option[Array[Byte]]]]

  /** None when there is nothing. */
  def readTail(path: Path, maxLength: Int, timeoutMillis: Long): Future[Outcome[Option[ObjectTail]]]

  /** None when there is nothing. */
  def readRange(path: Path, offset: Long, length: Int, timeoutMillis: Long): Future[Outcome[Option[Array[Byte]]]]
  def list(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]]
  def listRecursively(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]]
  def listUnpublished(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]]
  def delete(paths: Seq[Path], timeoutMillis: Long): Future[Outcome[Unit]]
}
