// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future, Promise}

import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * What the start of a run has read of its checkpoint. Spark asks for the same files several times, and one after another; from
 * here it gets an answer to each question without a request, if the answer is known, and each request is made once. A write
 * forgets what it may have changed, whatever its outcome. Errors are not kept. Paths are qualified. Thread-safe.
 *
 * @param reader the thread that gets answers: that of the query. Others, such as readers of the same checkpoint, ask storage.
 */
final class KnownFiles(reader: Thread) {
  private implicit val executor: ExecutionContext = ExecutionContext.parasitic

  // Guarded by this. A missing directory has no listing, and a missing file no content.
  private val listings = mutable.HashMap.empty[Path, Future[Option[Vector[FileStatus]]]]
  private val contents = mutable.HashMap.empty[Path, Future[Option[ObjectTail]]]
  private val presences = mutable.HashMap.empty[Path, Future[Boolean]]

  def isForCaller: Boolean = Thread.currentThread() eq reader

  /** The known listing of a directory, or else that of the request. */
  def listing(directory: Path)(list: => Future[Option[Vector[FileStatus]]]): Future[Option[Vector[FileStatus]]] =
    known(listings, directory)(list)

  /**
   * The known content of a file, or else that of the request, which gets the length in the directory's listing, if that is
   * known. A content of another length was read before the file was written again.
   */
  def content(file: Path)(read: Option[Long] => Future[Option[ObjectTail]]): Future[Option[ObjectTail]] = {
    val length = listed(file).flatten.map(_.getLen)
    known(contents, file)(read(length)).flatMap {
      case Some(tail) if length.exists(_ != tail.length) =>
        synchronized(contents.remove(file))
        known(contents, file)(read(length))
      case found => Future.successful(found)
    }
  }

  /** Whether the path exists: as a listing or a content shows, or else according to the request. */
  def exists(path: Path)(ask: => Future[Boolean]): Future[Boolean] = {
    val shown = synchronized {
      listings.get(path).map(_.map(_.nonEmpty)).orElse(contents.get(path).map(_.map(_.nonEmpty)))
    }.orElse(listed(path).map(status => Future.successful(status.nonEmpty)))
    val below = synchronized(contents.collect { case (file, read) if file.getParent == path => read }.toVector)
    def inside: Future[Boolean] = Future.sequence(below).map(_.exists(_.nonEmpty))
    shown.map(_.recoverWith { case _ => ask }).getOrElse(known(presences, path) {
      if (below.isEmpty) ask else inside.flatMap(isThere => if (isThere) Future.successful(true) else ask)
    })
  }

  /** Replaces what is known of a directory with a newer listing. */
  def listed(directory: Path, statuses: Vector[FileStatus]): Unit =
    synchronized(listings.put(directory, Future.successful(Some(statuses)))): Unit

  /** Adds a content that was read elsewhere, or written. */
  def read(file: Path, content: Array[Byte]): Unit =
    synchronized(contents.put(file, Future.successful(Some(ObjectTail(content, content.length.toLong))))): Unit

  /** Forgets all that a write to the file may have changed. */
  def changed(path: Path): Unit = synchronized {
    contents.remove(path)
    presences.clear()
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null).foreach(listings.remove(_): Unit)
  }

  /** The status of a path in the listing of its directory, if that has arrived. */
  private def listed(path: Path): Option[Option[FileStatus]] =
    synchronized(Option(path.getParent).flatMap(listings.get)).flatMap(_.value).flatMap(_.toOption)
      .map(_.flatMap(_.find(_.getPath == path)))

  private def known[A](answers: mutable.HashMap[Path, Future[A]], path: Path)(ask: => Future[A]): Future[A] = {
    val answer = Promise[A]()
    val before = synchronized {
      val before = answers.get(path)
      if (before.isEmpty) answers.put(path, answer.future)
      before
    }
    before.getOrElse {
      answer.completeWith(Future.unit.flatMap(_ => ask)).future.failed.foreach { _ =>
        synchronized(if (answers.get(path).contains(answer.future)) answers.remove(path): Unit)
      }
      answer.future
    }
  }
}
