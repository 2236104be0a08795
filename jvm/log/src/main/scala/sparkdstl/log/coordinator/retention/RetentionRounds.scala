// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.retention

import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.coordinator.view.{GuardedState, LogView, RetentionLimits, RetentionPlan, RoundState}
import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.metrics.Counter
import sparkdstl.log.read.EntryReader
import sparkdstl.log.request.QueryStorage

/**
 * Deletes the entries and data files that [[RetentionPlan]] names, in the background: one round at a time, of bounded size.
 *
 * A round first lists the claims of other runs, so that entries which fence a paused run stay. A round that completes all work
 * is followed by a pause, so that a query with quick batches does not list for each of them. A later round retries failed
 * deletions; `failures` counts rounds that failed.
 */
private[coordinator] final class RetentionRounds(
    storage: QueryStorage,
    state: GuardedState,
    deleter: Deleter,
    entries: EntryReader,
    claims: Claims,
    limits: RetentionLimits,
    failures: Counter
) {
  import RetentionRounds._
  import storage.runtime
  private implicit val executor: ExecutionContext = runtime.executor

  /** Begins a round if there is work, or schedules it for the end of the pause. */
  def request(): Unit = {
    val ended = Promise[Unit]()
    val begins = state.modify { of =>
      of.round match {
        case RoundState.Idle(notBefore) if of.mayDelete && mayHaveWork(of.view) =>
          val pauseNanos = if (of.isAtWork) notBefore - runtime.timer.nowNanos else 0L
          val millis = TimeUnit.NANOSECONDS.toMillis(math.max(0L, pauseNanos))
          (of.copy(round = if (millis > 0) RoundState.Planned else RoundState.UnderWay(ended.future)), Some(millis))
        case _ => (of, None)
      }
    }
    begins.foreach {
      case 0L => begin(ended)
      case millis => runtime.timer.schedule(millis) { () =>
          state.update(of => if (of.round == RoundState.Planned) of.copy(round = RoundState.Idle(0L)) else of): Unit
          request()
        }: Unit
    }
  }

  /** Completes at the end of the current round. */
  def underWay: Future[Unit] = state.get.round match {
    case RoundState.UnderWay(ended) => ended
    case _ => Future.unit
  }

  private def begin(ended: Promise[Unit]): Unit = {
    val outcome =
      try round()
      catch { case NonFatal(error) => Future.failed(error) }
    outcome.onComplete { result =>
      state.update { of =>
        val pauses = !result.toOption.exists(of => of == Progress || of == NoWork)
        val pause = TimeUnit.MILLISECONDS.toNanos(if (pauses) PauseMillis else 0)
        of.copy(round = RoundState.Idle(runtime.timer.nowNanos + pause))
      }: Unit
      ended.success(())
      result match {
        case Success(ending) => if (ending == Progress) request()
        case Failure(error) =>
          failures()
          logger.warn(
            s"Could not delete unneeded objects of ${storage.location.root}; a later round tries again",
            error
          )
      }
    }
  }

  private def round(): Future[RoundEnd] =
    if (!hasWork(state.get.view)) Future.successful(NoWork)
    else for {
      _ <- refresh()
      plan = RetentionPlan.of(state.get.view, limits)
      unreadable <- readAll(plan.read)
      delete = plan.delete.filterNot(unreadable)
      files = state.change(_.releaseWith(delete)).unneeded
      _ <- if (state.get.mayDelete) deleter.delete(files, delete) else Future.unit
    } yield {
      state.change(_.deleted(delete).filesDeleted(files)): Unit
      val left = hasWork(state.get.view)
      if (left && (delete.nonEmpty || plan.read.exists(!unreadable(_)))) Progress else Done
    }

  /** Updates the view with the changes of other runs: their claims, and their remaining entries. */
  private def refresh(): Future[Unit] = {
    val hasForeign = state.get.view.hasForeign
    for {
      fences <- claims.fences()
      there <- if (hasForeign) storage.batches().map(Some(_)) else Future.successful(None)
    } yield state.change { view =>
      val fenced = view.fencedAt(fences)
      there.fold(fenced)(batches => fenced.seenOnStorage(batches.toSet))
    }: Unit
  }

  /** Reads entries, a few at a time, and returns those that could not be read. */
  private def readAll(batches: Vector[Long]): Future[Set[Long]] =
    batches.grouped(EntryReader.AtOnce).foldLeft(Future.successful(Set.empty[Long])) { (before, some) =>
      before.flatMap(failed => Future.sequence(some.map(read)).map(failed ++ _.flatten))
    }

  private def read(batch: Long): Future[Option[Long]] =
    entries.read(batch, state.get.view.listedLength(batch)).transform {
      case Success(found) =>
        state.change(_.read(batch, found)): Unit
        Success(None)
      // A later run deletes the data files that it names.
      case Failure(_: DamagedLogException) =>
        state.change(_.damaged(batch)): Unit
        Success(None)
      case Failure(error) =>
        logger.warn(s"Could not read the entry of batch $batch of ${storage.location.root}; it is deleted later", error)
        Success(Some(batch))
    }

  /** A cheap check before [[hasWork]], which examines each store. */
  private def mayHaveWork(view: LogView): Boolean = view.unneeded.nonEmpty || view.requested.exists(!view.fences(_))

  private def hasWork(view: LogView): Boolean = view.unneeded.nonEmpty || !RetentionPlan.of(view, limits).isEmpty
}

private object RetentionRounds {
  private val logger = LoggerFactory.getLogger(classOf[RetentionRounds])

  private sealed trait RoundEnd
  private case object NoWork extends RoundEnd

  /** The round has made progress, and work is left. */
  private case object Progress extends RoundEnd
  private case object Done extends RoundEnd

  private val PauseMillis = 2000L
}
