// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.concurrent.{ExecutionContext, Future}

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.retention.Cleanup
import sparkdstl.log.coordinator.view.{GuardedState, RecoveryPlan}
import sparkdstl.log.transport.{FromDriver, RunId, ToDriver}

/** The driver's answers to the executors of one run; `opened` is the first one. Thread-safe. */
private[coordinator] final class ExecutorAnswers(
    id: RunId,
    opened: FromDriver.Opened,
    state: GuardedState,
    seals: SealIntake,
    snapshots: SnapshotListing,
    restart: RestartWatch,
    cleanup: Cleanup
)(implicit executor: ExecutionContext) {
  private val logger = LoggerFactory.getLogger(classOf[ExecutorAnswers])

  def to(from: String, message: ToDriver): Future[FromDriver] = message match {
    case ToDriver.Open => Future.successful(opened)
    case seal: ToDriver.Seal => Future.successful(seals.take(from, seal))
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
}
