package sparkdstl.log.coordinator

import java.util.concurrent.TimeoutException

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}

import sparkdstl.log.coordinator.attempts.AttemptLedger
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.CommittedSegment
import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.transport.{ExecutorLink, RunId, ToExecutor}

/**
 * The driver's wait between the end of a batch's tasks and its commit entry: until everything that the batch's attempts
 * sealed is durable.
 *
 * Executors that still hold something are asked to upload it at once, again and again until all is settled: one that
 * does not answer may still be at it; what it holds is lost only when Spark reports that the executor is gone.
 *
 * @param ended
 *   completes when the run ends, with the error that ends each wait
 */
private[coordinator] final class Barrier(
    run: RunId,
    ledger: AttemptLedger,
    executors: ExecutorLink,
    ended: Future[Throwable],
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  /**
   * What the commit entry of the closed batch is to carry.
   *
   * Fails with DSTL_LOST_CHANGES if something is lost, and with DSTL_COMMIT_TIMEOUT if it is not durable in time.
   */
  def await(batch: Long, timeoutMillis: Long): Future[Vector[CommittedSegment]] = {
    val settled = ledger.whenSettled
    val inTime = Promise[Unit]()
    ended.foreach(inTime.tryFailure)
    val deadline = runtime.timer.schedule(timeoutMillis)(() => inTime.tryFailure(new TimeoutException): Unit)
    settled.foreach(_ => inTime.trySuccess(()))
    askToFlush(inTime.future)
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

  private def askToFlush(settled: Future[Unit]): Unit = {
    val holders = ledger.holders
    if (holders.nonEmpty && !settled.isCompleted) {
      holders.foreach(executors.tell(_, run, ToExecutor.Flush))
      val again = runtime.timer.schedule(Barrier.AskAgainMillis)(() => askToFlush(settled))
      settled.onComplete(_ => again.cancel())
    }
  }
}

private object Barrier {
  private val AskAgainMillis = 1000L
}
