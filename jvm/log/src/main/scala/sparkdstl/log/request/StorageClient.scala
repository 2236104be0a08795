package sparkdstl.log.request

import java.io.IOException
import java.util.UUID
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.{ExecutionContext, Future}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.{Causes, LogErrors}
import sparkdstl.log.storage.{Attempt, ObjectStore, ObjectTail, Payload, StorageErrors, StorageOperation}
import sparkdstl.log.storage.StorageOperation._

/** What an exclusive create found. */
sealed trait Creation

object Creation {

  /** The object is there, and it is ours: this create made it, now or in an earlier attempt. */
  case object Ours extends Creation

  /**
   * Another writer's object is there.
   *
   * @param found its last bytes, or all
   */
  final case class Taken(found: ObjectTail) extends Creation
}

/**
 * Runs operations on storage as requests with a deadline, attempts, hedges and retries ([[Requests]]). No future of these
 * fails. `timeoutMillis` is how long the caller waits; errors are retried until then.
 *
 * @param pause completes before a request begins, where tests stop it
 */
final class StorageClient(
    store: ObjectStore,
    val requests: Requests,
    pause: Option[StorageOperation[_] => Future[Unit]] = None
) {

  /** What an exclusive create reads back, in bytes. */
  private final val TailLength = 64 * 1024

  /** Requests of one deletion that are under way at a time. */
  private final val DeletionLanes = 4

  private implicit val executor: ExecutionContext = requests.runtime.executor

  /** This client, with a pause before each request. */
  def pausing(before: StorageOperation[_] => Future[Unit]): StorageClient =
    new StorageClient(store, requests, Some(before))

  /**
   * @param attemptEnded
   *   called when an attempt has ended, also after the outcome: a late one may have written again what was deleted meanwhile.
   *   With false if it ended without storage's own answer: it may take effect later
   */
  def run[A](
      operation: StorageOperation[A],
      timeoutMillis: Long,
      attemptEnded: Boolean => Unit = _ => ()
  ): Future[Outcome[A]] = paused(operation)(request(operation, timeoutMillis, attemptEnded))

  /**
   * Creates exclusively. An attempt that finds an object there reads it back (retried like any read); `isOurs` judges its
   * last 64 KiB, or all if it is not longer.
   */
  def create(path: Path, content: Payload, timeoutMillis: Long)(
      isOurs: ObjectTail => Boolean
  ): Future[Outcome[Creation]] = {
    val operation = Create(path, content)
    paused(operation)(new ExclusiveCreate(operation, timeoutMillis, isOurs).begin())
  }

  /**
   * Whether storage creates exclusively: a [[StorageOperation.TryCreation]] at a new path in each attempt. The objects are
   * deleted afterwards, without a wait.
   *
   * @param pathOf a path of a random name
   */
  def createsExclusively(pathOf: UUID => Path, timeoutMillis: Long): Future[Outcome[Boolean]] = {
    val tried = new ConcurrentLinkedQueue[Path]
    def trial() = TryCreation(pathOf(requests.runtime.random.nextUuid()))
    val first = trial()
    val answer = requests.run(kindOf(first), first.toString, timeoutMillis) { number =>
      val attempt = if (number == 1) first else trial()
      tried.add(attempt.path): Unit
      store.begin(attempt)
    }
    // An object that is not deleted here, or written late, is deleted by the sweep of a later run.
    answer.onComplete(_ => delete(tried.asScala.toVector, timeoutMillis))
    answer
  }

  /**
   * Deletes many objects, with a request for as many as storage takes in one: the hedge of a slow one repeats no other.
   * All are tried, whatever the outcome of the others.
   */
  def delete(paths: Seq[Path], timeoutMillis: Long): Future[Outcome[Unit]] = {
    val deadline = new Deadline(requests.runtime.timer, timeoutMillis)
    val pages = paths.grouped(store.deletionPageSize).toVector
    val next = new AtomicInteger
    def deletePage(page: Delete): Future[Outcome[Unit]] =
      if (deadline.leftMillis > 0) request(page, deadline.leftMillis)
      else Future.successful(Outcome.Failed(LogErrors.requestTimeout(page.toString, timeoutMillis, 0, None)))
    def lane(before: Outcome[Unit]): Future[Outcome[Unit]] = pages.lift(next.getAndIncrement()) match {
      case None => Future.successful(before)
      case Some(page) => deletePage(Delete(page)).flatMap(outcome => lane(worse(before, outcome)))
    }
    val lanes = Vector.fill(math.min(pages.size, DeletionLanes))(lane(Outcome.Done(())))
    Future.sequence(lanes).map(_.foldLeft[Outcome[Unit]](Outcome.Done(()))(worse))
  }

  private def paused[A](operation: StorageOperation[_])(request: => Future[Outcome[A]]): Future[Outcome[A]] =
    pause.fold(request) { before =>
      before(operation).transformWith(_.fold(error => Future.successful(Outcome.Failed(error)), _ => request))
    }

  private def request[A](
      operation: StorageOperation[A],
      timeoutMillis: Long,
      attemptEnded: Boolean => Unit = _ => ()
  ): Future[Outcome[A]] =
    requests.run(kindOf(operation), operation.toString, timeoutMillis) { _ =>
      val attempt = store.begin(operation)
      val result = attempt.result.transform { result =>
        attemptEnded(result.failed.toOption.forall(StorageErrors.isDefinite))
        result.recoverWith { case error => operation.answerOf(error).fold[Try[A]](Failure(error))(Success(_)) }
      }
      new Attempt(result, () => attempt.cancel())
    }

  private def kindOf(operation: StorageOperation[_]): RequestKind = {
    val repeatable = operation match {
      case _: Replace => store.replacesAtomically
      case _ => true
    }
    RequestKind(operation.kind, operation.bytes, repeatable)
  }

  private def worse(one: Outcome[Unit], other: Outcome[Unit]): Outcome[Unit] = (one, other) match {
    case (unknown: Outcome.Unknown, _) => unknown
    case (_, unknown: Outcome.Unknown) => unknown
    case (failed: Outcome.Failed, _) => failed
    case _ => other
  }

  /**
   * Creates, and reads back an object that is found: an earlier attempt, or the client below in this one, may have written
   * it although the reply was lost. If it was deleted by then, the create begins anew.
   */
  private final class ExclusiveCreate(operation: Create, timeoutMillis: Long, isOurs: ObjectTail => Boolean) {
    private val deadline = new Deadline(requests.runtime.timer, timeoutMillis)

    def begin(): Future[Outcome[Creation]] = round(1)

    private def round(number: Int): Future[Outcome[Creation]] =
      request(operation, deadline.leftMillis).flatMap {
        case Outcome.Done(None) => Future.successful(Outcome.Done(Creation.Ours))
        case Outcome.Done(Some(conflict)) => readBack(number, conflict)
        case Outcome.Failed(error) if number == 1 => Future.successful(Outcome.Failed(error))
        // A refusal in this round is no answer to an earlier one.
        case Outcome.Failed(error) => Future.successful(Outcome.Unknown(error))
        case unknown: Outcome.Unknown => Future.successful(unknown)
      }

    private def readBack(number: Int, conflict: Throwable): Future[Outcome[Creation]] =
      request(ReadTail(operation.path, TailLength), deadline.leftMillis).flatMap {
        case Outcome.Done(Some(tail)) => Future.successful(judge(tail))
        case Outcome.Done(None) => again(number, conflict)
        case other => other.asFuture.failed.map(error => Outcome.Unknown(unread(error, conflict)))
      }

    private def judge(found: ObjectTail): Outcome[Creation] =
      try Outcome.Done(if (isOurs(found)) Creation.Ours else Creation.Taken(found))
      catch { case NonFatal(error) => Outcome.Unknown(error) }

    /** The object that was found was deleted: another round, after a delay as after an error. */
    private def again(number: Int, conflict: Throwable): Future[Outcome[Creation]] = {
      val delay = requests.options.retryDelayMillis(number, requests.runtime.random.nextDouble())
      if (!requests.options.retries || delay >= deadline.leftMillis)
        Future.successful(
          Outcome.Unknown(LogErrors.requestTimeout(operation.toString, timeoutMillis, number, Some(conflict)))
        )
      // Without a timer there is no delay; the next round needs a timer itself, and ends.
      else requests.runtime.after(delay).recover { case _ => () }.flatMap(_ => round(number + 1))
    }

    private def unread(error: Throwable, conflict: Throwable): Throwable = {
      val cause = new IOException(
        s"$operation found an object there, and could not read it to see whose it is: ${Causes.describe(error)}",
        error
      )
      cause.addSuppressed(conflict)
      cause
    }
  }
}
