// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success}

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.retention.Cleanup
import sparkdstl.log.coordinator.view.{GuardedState, RecoveryPlan}
import sparkdstl.log.transport.{FromDriver, RunId, ToDriver}

/** The driver's answers to the executors of one run; `opened` is the first one, with the lengths of entries. Thread-safe. */
private[coordinator] final class ExecutorAnswers(
    id: RunId,
    opened: Map[Long, Long] => FromDriver.Opened,
    state: GuardedState,
    seals: SealIntake,
    plans: BatchPlans,
    snapshots: SnapshotListing,
    restart: RestartWatch,
    cleanup: Cleanup
)(implicit executor: ExecutionContext) {
  private val logger = LoggerFactory.getLogger(classOf[ExecutorAnswers])

  def to(from: String, message: ToDriver): Future[FromDriver] = message match {
    case ToDriver.Open => Future.successful(opened(state.get.view.lengths))
    case seal: ToDriver.Seal => whenPlanned(seal.batch, seals.take(from, seal))
    case withdraw: ToDriver.Withdraw => Future.successful(seals.withdraw(withdraw))
    case uploaded: ToDriver.Uploaded => Future.successful(seals.uploaded(from, uploaded))
    case ToDriver.Bypass(why) =>
      val isFirst = state.modify(of => (of.copy(bypassed = true), !of.bypassed))
      if (isFirst) logger.warn(s"State changes of ${id.root} bypass the log: $why")
      Future.successful(FromDriver.Noted)
    case ToDriver.Release(lowest) =>
      state.change(lowest.foldLeft(_) { case (view, (store, version)) => view.releasedBelow(store, version) })
      cleanup.request()
      Future.successful(FromDriver.Noted)
    case ToDriver.ListStore(store) =>
      restart.reached(store)
      snapshots.known().map(_ => RecoveryPlan.of(state.get.view, store))
  }

  /** Until a batch is planned durably, no task of it may end: what its sink makes visible could belong to another batch. */
  private def whenPlanned(batch: Long, answer: FromDriver): Future[FromDriver] = answer match {
    case accepted: FromDriver.Accepted => plans.durable(batch).transform {
        case Success(_) => Success(accepted)
        case Failure(error) => Success(FromDriver.NotPlanned.of(error))
      }
    case other => Future.successful(other)
  }
}
