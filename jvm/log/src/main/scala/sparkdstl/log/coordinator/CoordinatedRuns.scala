// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.util.concurrent.atomic.AtomicReference

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.transport.{FromDriver, RunId, ToDriver}

/**
 * The runs that a driver coordinates: at most one per checkpoint. A query adds its run at the start and removes it at the end;
 * no message of an executor does. Thread-safe.
 */
final class CoordinatedRuns {
  import CoordinatedRuns._

  private val runs = new AtomicReference(Runs())

  /** Makes the run the current one on its checkpoint, and returns the previous one, which is removed. */
  def begin(run: RunCoordinator): Option[RunCoordinator] = {
    val before = runs.getAndUpdate(of => of.ended(of.on(run.id.root).map(_.id)).began(run))
    before.on(run.id.root)
  }

  def end(id: RunId): Option[RunCoordinator] =
    runs.getAndUpdate(of => of.ended(of.current(id).map(_.id))).current(id)

  /** Records that an ended run on `root` has writes under way until `quiet` completes. */
  def busyUntil(root: String, quiet: Future[Unit])(implicit executor: ExecutionContext): Unit = {
    val all = runs.updateAndGet(_.occupied(root, quiet)).busy(root)
    all.onComplete(_ => runs.updateAndGet(_.freed(root, all)))
  }

  /**
   * Completes when no ended run on `root` has a write under way, or has waited for that as long as it does. A run waits for it
   * before it begins: two runs of one process must not write one commit entry. It covers all ended runs, because the start of a
   * run may be interrupted while it waits.
   */
  def whenQuiet(root: String): Future[Unit] = runs.get.busy.getOrElse(root, Future.unit)

  /** The same for all checkpoints. */
  def whenAllQuiet()(implicit executor: ExecutionContext): Future[Unit] =
    Future.sequence(runs.get.busy.values.toVector).map(_ => ())

  def on(root: String): Option[RunCoordinator] = runs.get.on(root)
  def all: Vector[RunCoordinator] = runs.get.byRoot.valuesIterator.toVector

  def answer(from: String, id: RunId, message: ToDriver): Future[FromDriver] = {
    val now = runs.get
    now.current(id) match {
      case Some(run) => run.answer(from, message)
      case None if now.on(id.root).nonEmpty || now.lastEnded.contains(id) => Future.successful(FromDriver.Superseded)
      case None => Future.successful(FromDriver.NotCoordinated)
    }
  }

  /** Reports the loss of an executor to all runs. */
  def executorLost(executor: String, reason: String): Unit = all.foreach(_.executorLost(executor, reason))
}

private object CoordinatedRuns {

  /** Late tasks of older runs get the answer [[FromDriver.NotCoordinated]]. */
  private val RememberedRuns = 1000

  private final case class Runs(
      byRoot: Map[String, RunCoordinator] = Map.empty,
      lastEnded: Vector[RunId] = Vector(),
      busy: Map[String, Future[Unit]] = Map.empty
  ) {
    def on(root: String): Option[RunCoordinator] = byRoot.get(root)
    def current(id: RunId): Option[RunCoordinator] = on(id.root).filter(_.id == id)
    def began(run: RunCoordinator): Runs = copy(byRoot = byRoot + (run.id.root -> run))

    def ended(id: Option[RunId]): Runs =
      id.fold(this)(of => copy(byRoot = byRoot - of.root, lastEnded = (lastEnded :+ of).takeRight(RememberedRuns)))

    def occupied(root: String, quiet: Future[Unit])(implicit executor: ExecutionContext): Runs =
      copy(busy = busy + (root -> busy.get(root).fold(quiet)(_.transformWith(_ => quiet))))

    def freed(root: String, all: Future[Unit]): Runs =
      if (busy.get(root).contains(all)) copy(busy = busy - root) else this
  }
}
