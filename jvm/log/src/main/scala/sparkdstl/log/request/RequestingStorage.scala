package sparkdstl.log.request

import java.io.IOException
import java.util.UUID
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.storage.{Attempt, ObjectStore, ObjectTail, Payload, StorageErrors, StoredObject}

/** Asks an [[sparkdstl.log.storage.ObjectStore]] by way of [[Requests]]. */
final class RequestingStorage(store: ObjectStore, requests: Requests) extends StorageClient {
  import RequestingStorage._

  private implicit val executor: ExecutionContext = requests.runtime.executor

  override def put(path: Path, content: Payload, timeoutMillis: Long)(attemptEnded: () => Unit): Future[Outcome[Unit]] =
    requests.run(RequestKind.write("put", content.length), s"put of $path", timeoutMillis) { _ =>
      mapping(store.put(path, content)) { result =>
        attemptEnded()
        result match {
          // What is there already an earlier attempt has put there.
          case Failure(error) if StorageErrors.meansAlreadyExists(error) => Success(())
          case other => other
        }
      }
    }.outcome

  override def replace(path: Path, content: Payload, timeoutMillis: Long): Future[Outcome[Unit]] = {
    val kind =
      if (store.replacesAtomically) RequestKind.write("replace", content.length)
      else RequestKind.writeOnce("replace", content.length)
    requests.run(kind, s"replacement of $path", timeoutMillis)(_ => store.replace(path, content)).outcome
  }

  override def create(path: Path, content: Payload, timeoutMillis: Long)(
      isOurs: ObjectTail => Boolean
  ): Future[Outcome[Creation]] = new ExclusiveCreate(path, content, timeoutMillis, isOurs).begin()

  override def createsExclusively(pathOf: UUID => Path, timeoutMillis: Long): Future[Outcome[Boolean]] = {
    val tried = new ConcurrentLinkedQueue[Path]
    val answer = requests.run(RequestKind.write("create"), "trial of exclusive creation", timeoutMillis) { _ =>
      val path = pathOf(requests.runtime.random.nextUuid())
      tried.add(path): Unit
      store.createsExclusively(path)
    }.outcome
    // What is not deleted here, or written late, the sweep of a later run finds.
    answer.onComplete(_ => delete(tried.asScala.toVector, timeoutMillis))
    answer
  }

  override def read(path: Path, maxLength: Long, timeoutMillis: Long): Future[Outcome[Option[Array[Byte]]]] =
    requests
      .run(RequestKind.read("read", maxLength), s"read of $path", timeoutMillis)(_ =>
        unlessMissing(store.read(path, maxLength))
      )
      .outcome

  override def readTail(path: Path, maxLength: Int, timeoutMillis: Long): Future[Outcome[Option[ObjectTail]]] =
    requests
      .run(RequestKind.read("readTail", maxLength.toLong), s"read of the end of $path", timeoutMillis)(_ =>
        unlessMissing(store.readTail(path, maxLength))
      )
      .outcome

  override def readRange(
      path: Path,
      offset: Long,
      length: Int,
      timeoutMillis: Long
  ): Future[Outcome[Option[Array[Byte]]]] = {
    val name = s"read of $length bytes from $offset of $path"
    requests
      .run(RequestKind.read("readRange", length.toLong), name, timeoutMillis)(_ =>
        unlessMissing(store.readRange(path, offset, length))
      )
      .outcome
  }

  override def list(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]] =
    requests
      .run(RequestKind.read("list"), s"listing of $directory", timeoutMillis)(_ => store.list(directory))
      .outcome

  override def listRecursively(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]] =
    requests
      .run(RequestKind.read("listRecursively"), s"listing of $directory and below", timeoutMillis)(_ =>
        store.listRecursively(directory)
      )
      .outcome

  override def listUnpublished(directory: Path, timeoutMillis: Long): Future[Outcome[Seq[StoredObject]]] =
    requests
      .run(RequestKind.read("listUnpublished"), s"listing of unfinished objects below $directory", timeoutMillis)(_ =>
        store.listUnpublished(directory)
      )
      .outcome

  override def delete(paths: Seq[Path], timeoutMillis: Long): Future[Outcome[Unit]] =
    if (paths.isEmpty) Future.successful(Outcome.Done(()))
    else new PagedDeletion(paths.grouped(store.deletionPageSize).toVector, timeoutMillis).begin()

  private def unlessMissing[T](attempt: Attempt[T]): Attempt[Option[T]] = mapping(attempt) {
    case Success(value) => Success(Some(value))
    case Failure(error) if StorageErrors.meansMissing(error) => Success(None)
    case Failure(error) => Failure(error)
  }

  private def mapping[T, U](attempt: Attempt[T])(result: Try[T] => Try[U]): Attempt[U] =
    new Attempt(attempt.result.transform(result), () => attempt.cancel())

  /**
   * Deletes many objects, with a request for as many as storage takes in one: so that one that is slow, and is hedged, has none
   * of the others deleted once more. All are tried, whatever becomes of the others.
   */
  private final class PagedDeletion(pages: Vector[Seq[Path]], timeoutMillis: Long) {
    private val deadline = new Deadline(requests.runtime.timer, timeoutMillis)
    private val next = new AtomicInteger

    def begin(): Future[Outcome[Unit]] =
      Future.sequence(Vector.fill(math.min(pages.size, DeletionLanes))(lane(Outcome.Done(())))).map(_.reduce(worse))

    private def lane(before: Outcome[Unit]): Future[Outcome[Unit]] = pages.lift(next.getAndIncrement()) match {
      case None => Future.successful(before)
      case Some(page) => delete(page).flatMap(outcome => lane(worse(before, outcome)))
    }

    private def delete(page: Seq[Path]): Future[Outcome[Unit]] = {
      val name = s"deletion of ${page.head}${if (page.size > 1) s" and ${page.size - 1} more" else ""}"
      val left = deadline.leftMillis
      if (left <= 0) Future.successful(Outcome.Failed(LogErrors.requestTimeout(name, timeoutMillis, 0, None)))
      else requests.run(RequestKind.write("delete", page.size.toLong), name, left)(_ => store.delete(page)).outcome
    }

    private def worse(one: Outcome[Unit], other: Outcome[Unit]): Outcome[Unit] = (one, other) match {
      case (unknown: Outcome.Unknown, _) => unknown
      case (_, unknown: Outcome.Unknown) => unknown
      case (failed: Outcome.Failed, _) => failed
      case _ => other
    }
  }

  /**
   * Creates, and where something is found reads it back: it may be what an earlier attempt, or the client below in this
   * one, has written although the reply was lost. When it is gone by then, all begins anew.
   */
  private final class ExclusiveCreate(
      path: Path,
      content: Payload,
      timeoutMillis: Long,
      isOurs: ObjectTail => Boolean
  ) {
    private val name = s"creation of $path"
    private val timer = requests.runtime.timer
    private val deadline = new Deadline(timer, timeoutMillis)

    def begin(): Future[Outcome[Creation]] = round(1)

    private def round(number: Int): Future[Outcome[Creation]] =
      tryToCreate().flatMap {
        case Outcome.Done(Created) => Future.successful(Outcome.Done(Creation.Ours))
        case Outcome.Done(Found(conflict)) => readBack(number, conflict)
        case Outcome.Failed(error) if number == 1 => Future.successful(Outcome.Failed(error))
        // What storage has refused now it may have done in an earlier round.
        case Outcome.Failed(error) => Future.successful(Outcome.Unknown(error))
        case unknown: Outcome.Unknown => Future.successful(unknown)
      }

    private def tryToCreate(): Future[Outcome[Tried]] =
      requests.run[Tried](RequestKind.write("create", content.length), name, deadline.leftMillis) { _ =>
        mapping(store.create(path, content)) {
          case Success(_) => Success(Created)
          case Failure(error) if StorageErrors.meansAlreadyExists(error) => Success(Found(error))
          case Failure(error) if StorageErrors.meansConcurrentRequest(error) => Success(Found(error))
          case Failure(error) => Failure(error)
        }
      }.outcome

    private def readBack(number: Int, conflict: Throwable): Future[Outcome[Creation]] =
      readTail(path, TailLength, deadline.leftMillis).flatMap {
        case Outcome.Done(Some(tail)) => Future.successful(judge(tail))
        case Outcome.Done(None) => again(number, conflict)
        case Outcome.Failed(error) => Future.successful(Outcome.Unknown(unread(error, conflict)))
        case Outcome.Unknown(error) => Future.successful(Outcome.Unknown(unread(error, conflict)))
      }

    private def judge(found: ObjectTail): Outcome[Creation] =
      try Outcome.Done(if (isOurs(found)) Creation.Ours else Creation.Taken(found))
      catch { case NonFatal(error) => Outcome.Unknown(error) }

    /** As after an error: what was there a moment ago is not there any more. */
    private def again(number: Int, conflict: Throwable): Future[Outcome[Creation]] = {
      val delay = requests.options.retryDelayMillis(number, requests.runtime.random.nextDouble())
      if (!requests.options.retries || delay >= deadline.leftMillis)
        Future.successful(Outcome.Unknown(LogErrors.requestTimeout(name, timeoutMillis, number, Some(conflict))))
      else after(delay).flatMap(_ => round(number + 1))
    }

    private def after(delayMillis: Long): Future[Unit] = {
      val promise = Promise[Unit]()
      // Without a timer there is no delay; the next round ends all the same, as it needs a timer itself.
      try timer.schedule(delayMillis)(() => promise.success(())): Unit
      catch { case NonFatal(_) => promise.success(()) }
      promise.future
    }

    private def unread(error: Throwable, conflict: Throwable): Throwable = {
      val cause = new IOException(
        s"$name found an object there, and could not read it to see whose it is: ${StorageErrors.describe(error)}",
        error
      )
      cause.addSuppressed(conflict)
      cause
    }
  }
}

private object RequestingStorage {

  /** What an exclusive create reads back, in bytes. */
  val TailLength: Int = 64 * 1024

  /** Requests of one deletion that are under way at a time. */
  private val DeletionLanes = 4

  /** What an attempt to create has met. */
  sealed trait Tried
  case object Created extends Tried
  final case class Found(conflict: Throwable) extends Tried
}
