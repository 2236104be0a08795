// SPDX-License-Identifier: Apache-2.0
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

/** The answer to an exclusive create. */
sealed trait Creation

object Creation {

  /** This create has created the object, now or in an earlier attempt. */
  case object Ours extends Creation

  /** Another writer has created the object, which ends in `found`. */
  final case class Taken(found: ObjectTail) extends Creation
}

/**
 * Runs operations on storage as requests with deadline, hedges and retries ([[Requests]]). The returned futures do not fail.
 * `timeoutMillis` is the time until the deadline. `pause` delays requests in tests.
 */
final class StorageClient(
    store: ObjectStore,
    val requests: Requests,
    pause: Option[StorageOperation[_] => Future[Unit]] = None
) {

  /** Bytes of the end of an object that an exclusive create reads back at least. */
  private final val TailLength = 64 * 1024

  /** Concurrent requests of one deletion. */
  private final val DeletionLanes = 4

  private implicit val executor: ExecutionContext = requests.runtime.executor

  /** This client, with a pause before each request. */
  def pausing(before: StorageOperation[_] => Future[Unit]): StorageClient =
    new StorageClient(store, requests, Some(before))

  /**
   * Runs an operation. `attemptEnded` is called at the end of each attempt, also after the outcome, because a late attempt may
   * write a deleted object again. Its argument is false if the attempt may still take effect.
   */
  def run[A](
      operation: StorageOperation[A],
      timeoutMillis: Long,
      attemptEnded: Boolean => Unit = _ => ()
  ): Future[Outcome[A]] = paused(operation)(request(operation, timeoutMillis, attemptEnded))

  /**
   * Creates exclusively. If an object exists, the client reads back its last 64 KiB, or `length` bytes if they are more, and
   * `isOurs` decides whether this create has written it.
   */
  def create(path: Path, content: Payload, timeoutMillis: Long, length: Int = 0)(
      isOurs: ObjectTail => Boolean
  ): Future[Outcome[Creation]] = {
    val operation = Create(path, content)
    paused(operation)(new ExclusiveCreate(operation, timeoutMillis, math.max(length, TailLength), isOurs).round(1))
  }

  /**
   * Whether storage creates exclusively, by a [[StorageOperation.TryCreation]] per attempt, each at a new path with a random
   * id. The objects are deleted in the background.
   */
  def createsExclusively(pathOf: UUID => Path, timeoutMillis: Long): Future[Outcome[Boolean]] = {
    val tried = new ConcurrentLinkedQueue[(Path, Future[Boolean])]
    def trial() = TryCreation(pathOf(requests.runtime.random.nextUuid()))
    val first = trial()
    val answer = requests.run(kindOf(first), first.toString, timeoutMillis) { number =>
      val attempt = if (number == 1) first else trial()
      val begun = store.begin(attempt)
      tried.add(attempt.path -> begun.result): Unit
      begun
    }
    answer.onComplete { _ =>
      val attempts = tried.asScala.toVector
      // The sweep of a later run deletes what stays, where storage creates exclusively.
      delete(attempts.map(_._1), timeoutMillis)
      for ((path, result) <- attempts if !result.isCompleted)
        result.onComplete(_ => delete(Vector(path), timeoutMillis))
    }
    answer
  }

  /**
   * Deletes objects, with one request per page of the storage, so that a hedge repeats only one page. A failed page does not
   * stop the others.
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
   * Creates, and reads back an existing object: an earlier attempt, or a retry of the client below, may have created it
   * although the reply was lost. If the object is deleted before it is read, the create begins again.
   */
  private final class ExclusiveCreate(
      operation: Create,
      timeoutMillis: Long,
      length: Int,
      isOurs: ObjectTail => Boolean
  ) {
    private val deadline = new Deadline(requests.runtime.timer, timeoutMillis)

    def round(number: Int): Future[Outcome[Creation]] =
      request(operation, deadline.leftMillis).flatMap {
        case Outcome.Done(None) => Future.successful(Outcome.Done(Creation.Ours))
        case Outcome.Done(Some(conflict)) => readBack(number, conflict)
        case Outcome.Failed(error) if number == 1 => Future.successful(Outcome.Failed(error))
        // A refusal in this round does not exclude the effect of an earlier one.
        case Outcome.Failed(error) => Future.successful(Outcome.Unknown(error))
        case unknown: Outcome.Unknown => Future.successful(unknown)
      }

    private def readBack(number: Int, conflict: Throwable): Future[Outcome[Creation]] =
      request(ReadTail(operation.path, length), deadline.leftMillis).flatMap {
        case Outcome.Done(Some(tail)) => Future.successful(judge(tail))
        case Outcome.Done(None) => again(number, conflict)
        case other => other.asFuture.failed.map(error => Outcome.Unknown(unread(error, conflict)))
      }

    private def judge(found: ObjectTail): Outcome[Creation] =
      try Outcome.Done(if (isOurs(found)) Creation.Ours else Creation.Taken(found))
      catch { case NonFatal(error) => Outcome.Unknown(error) }

    /** Begins another round, after the delay of a retry, because the existing object was deleted. */
    private def again(number: Int, conflict: Throwable): Future[Outcome[Creation]] = {
      val delay = requests.options.retryDelayMillis(number, requests.runtime.random.nextDouble())
      if (!requests.options.retries || delay >= deadline.leftMillis)
        Future.successful(
          Outcome.Unknown(LogErrors.requestTimeout(operation.toString, timeoutMillis, number, Some(conflict)))
        )
      // If the timer is closed, the next round fails.
      else requests.runtime.after(delay).recover { case _ => () }.flatMap(_ => round(number + 1))
    }

    private def unread(error: Throwable, conflict: Throwable): Throwable = {
      val cause = new IOException(
        s"$operation found an existing object, but could not read it to see which writer created it: ${Causes.describe(error)}",
        error
      )
      cause.addSuppressed(conflict)
      cause
    }
  }
}
