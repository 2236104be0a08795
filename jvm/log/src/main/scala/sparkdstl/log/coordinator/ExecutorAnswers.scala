package sparkdstl.log.coordinator

import java.util.concurrent.atomic.AtomicBoolean

import scala.concurrent.{ExecutionContext, Future}

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.attempts.AttemptLedger
import sparkdstl.log.coordinator.retention.Retention
import sparkdstl.log.coordinator.snapshots.RunSnapshots
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.format.{QueryLocation, SegmentPart, Writer}
import sparkdstl.log.transport.{BarrierReport, FromDriver, ToDriver}

/**
 * What the driver says to the executors of a run. Thread-safe.
 *
 * @param opened
 *   what is said to one that asks for the first time
 * @param isAtWork
 *   whether the run still commits batches
 * @param barrier
 *   how its newest barrier went
 */
private[coordinator] final class ExecutorAnswers(
    location: QueryLocation,
    writer: Writer,
    opened: FromDriver.Opened,
    ledger: AttemptLedger,
    retention: Retention,
    snapshots: RunSnapshots,
    restart: RestartWatch,
    metrics: CommitMetrics,
    isAtWork: () => Boolean,
    barrier: () => Option[BarrierReport]
)(implicit executor: ExecutionContext) {
  import ExecutorAnswers._

  private val pastTheLog = new AtomicBoolean

  /** Answers an executor, or throws. */
  def to(from: String, message: ToDriver): Future[FromDriver] = message match {
    case ToDriver.Open => Future.successful(opened)
    case seal: ToDriver.Seal => Future.successful(taken(from, seal))
    case ToDriver.Withdraw(attempt, batch) => Future.successful(FromDriver.Withdrawal(ledger.withdraw(attempt, batch)))
    case ToDriver.Uploaded(results) =>
      val unknown = results.filterNot { case (ticket, result) => ledger.uploaded(from, ticket, result) }
      Future.successful(answerToUnknown(unknown))
    case ToDriver.Release(lowest) =>
      retention.release(lowest)
      Future.successful(FromDriver.Noted)
    case ToDriver.ListStore(storeDirectory) =>
      restart.asked(storeDirectory)
      snapshots.of(storeDirectory).map { case (held, plainUpTo) =>
        val lowest = retention.lowest(storeDirectory)
        FromDriver.Versions(retention.versions(storeDirectory), held.filter(_.version >= lowest), plainUpTo)
      }
    case offer: ToDriver.OfferSnapshot =>
      if (isAtWork()) snapshots.offer(offer) else Future.successful(FromDriver.Superseded)
    case ToDriver.PastTheLog(why) =>
      if (!pastTheLog.getAndSet(true)) logger.warn(s"Nothing of ${location.root} goes to the log: $why")
      Future.successful(FromDriver.Noted)
  }

  private def taken(from: String, seal: ToDriver.Seal): FromDriver =
    if (!isAtWork()) FromDriver.Superseded
    else ledger.seal(from, seal) match {
      case FromDriver.Accepted(_) => FromDriver.Accepted(barrier())
      // As when a query is stopped: two messages of one executor may overtake each other.
      case AttemptLedger.Withdrawn => AttemptLedger.Withdrawn
      case refused: FromDriver.Refused =>
        metrics.refused()
        // The task cannot be relied on to say so: Spark drops what a killed one fails with.
        logger.warn(
          ProtocolErrors.sealRefused(seal.attempt, seal.batch, writer.run, refused.reason, refused.stale).getMessage +
            s" It is on executor $from."
        )
        refused
      case other => other
    }

  /**
   * Uploads of which the ledger knows nothing are told for a second time, or belong to a batch that was committed without
   * them. Then their executor is to discard them: their files may hold what a batch under way needs.
   */
  private def answerToUnknown(results: Vector[(Long, Either[String, SegmentPart])]): FromDriver =
    if (!isAtWork()) FromDriver.Noted
    else {
      val unwanted = results.collect { case (ticket, Right(part)) if !part.file.exists(retention.names) => ticket }
      if (unwanted.isEmpty) FromDriver.Noted else FromDriver.Unwanted(unwanted)
    }
}

private object ExecutorAnswers {
  private val logger = LoggerFactory.getLogger(classOf[ExecutorAnswers])
}
