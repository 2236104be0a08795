// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.util.concurrent.TimeoutException

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import sparkdstl.log.coordinator.attempts.AttemptLedger
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.CommittedSegment
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{ExecutorLink, RunId, ToExecutor}

/**
 * The driver's wait between the end of a batch's tasks and its commit entry: until the changes of the selected attempts are
 * durable.
 *
 * The barrier repeats its flush request to executors that hold changes until all stores are settled. Changes count as lost only
 * when an upload fails or Spark reports the loss of the executor, not when an executor does not answer.
 */
private[coordinator] final class Barrier(
    run: RunId,
    ledger: AttemptLedger,
    executors: ExecutorLink,
    runtime: ProtocolRuntime
) {
  private final val RepeatMillis = 1000L
  private implicit val executor: ExecutionContext = runtime.executor

  // Guarded by this: the newest wait, and why all fail.
  private var newest = Promise[Unit]()
  private var ended = Option.empty[Throwable]

  /** Closes the batch, selects its winners, and requests the losers to drop their local state; see [[AttemptLedger.close]]. */
  def close(batch: Long, ids: Set[String], reported: Seq[Long]): Unit = {
    val closing = ledger.close(batch, ids, reported)
    closing.losers.groupBy { case (executor, attempt, _) => (executor, attempt) }.foreach {
      case ((executor, attempt), stores) => tell(executor, ToExecutor.Drop(attempt, stores.map(_._3)))
    }
    if (closing.missingIds.nonEmpty && ledger.hasSeals(batch))
      throw ProtocolErrors.missingCheckpointIds(batch, closing.missingIds.toVector.sorted)
  }

  /**
   * Completes with the segments of the closed batch once all are durable.
   *
   * Fails with DSTL_LOST_CHANGES if changes are lost, and with DSTL_COMMIT_TIMEOUT if they are not durable in time.
   */
  def await(batch: Long, timeoutMillis: Long): Future[Vector[CommittedSegment]] = {
    val settled = ledger.whenSettled
    val inTime = Promise[Unit]()
    synchronized {
      newest = inTime
      ended
    }.foreach(inTime.tryFailure)
    val deadline = runtime.timer.schedule(timeoutMillis) { () =>
      // After a pause of this process its time may be over before anything shows that the batch is settled.
      if (!settled.isCompleted) inTime.tryFailure(new TimeoutException): Unit
    }
    settled.foreach(_ => inTime.trySuccess(()))
    requestFlush(inTime.future)
    inTime.future.transformWith { outcome =>
      deadline.cancel()
      outcome match {
        case Success(_) => ledger.result.fold(
            lost => Future.failed(ProtocolErrors.lostSegments(batch, lost)),
            Future.successful
          )
        case Failure(_: TimeoutException) =>
          Future.failed(ProtocolErrors.commitTimeout(batch, ledger.unsettled, timeoutMillis))
        case Failure(error) => Future.failed(error)
      }
    }
  }

  /** Fails the current wait and later ones with `error`. */
  def end(error: Throwable): Unit = synchronized {
    if (ended.isEmpty) ended = Some(error)
    newest
  }.tryFailure(error): Unit

  private def requestFlush(settled: Future[Unit]): Unit = {
    val holders = ledger.holders
    if (holders.nonEmpty && !settled.isCompleted) {
      holders.foreach(tell(_, ToExecutor.Flush))
      val again = runtime.timer.schedule(RepeatMillis)(() => requestFlush(settled))
      settled.onComplete(_ => again.cancel())
    }
  }

  /** A send that throws counts as failed. */
  private def tell(executor: String, message: ToExecutor): Unit =
    try executors.tell(executor, run, message): Unit
    catch { case NonFatal(_) => () }
}
