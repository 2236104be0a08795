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
 * A round first lists the claims of other runs, so that entries which fence a paused run stay, and the pins of readers. It deletes
 * only what Spark has purged before: a pin holds if Spark had not purged its batch when it was created. A round that completes all
 * work is followed by a pause, so that a query with quick batches does not list for each of them. A later round retries failed
 * deletions, after pauses that double; `failures` counts rounds that failed. Pins last `pinMaxMillis` at most.
 */
private[coordinator] final class RetentionRounds(
    storage: QueryStorage,
    state: GuardedState,
    deleter: Deleter,
    entries: EntryReader,
    claims: Claims,
    limits: RetentionLimits,
    pinMaxMillis: Long,
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
        // As the run ends, a planned round would come too late.
        case RoundState.Planned if !of.isAtWork && of.mayDelete =>
          (of.copy(round = RoundState.UnderWay(ended.future)), Some(0L))
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

  /** Completes when no round is under way. */
  def whenIdle: Future[Unit] = state.get.round match {
    case RoundState.UnderWay(ended) => ended.flatMap(_ => whenIdle)
    case _ => Future.unit
  }

  private def begin(ended: Promise[Unit]): Unit = {
    val outcome =
      try round()
      catch { case NonFatal(error) => Future.failed(error) }
    outcome.onComplete { result =>
      state.update { of =>
        val failed = if (result.isFailure) of.failedRounds + 1 else 0
        val pauses = !result.toOption.exists(of => of == Progress || of == NoWork)
        val pauseMillis = math.min(PauseMillis << math.min(math.max(failed - 1, 0), 10), LongestPauseMillis)
        val pause = TimeUnit.MILLISECONDS.toNanos(if (pauses) pauseMillis else 0)
        of.copy(round = RoundState.Idle(runtime.timer.nowNanos + pause), failedRounds = failed)
      }: Unit
      result match {
        case Success(ending) => if (ending == Progress) request()
        case Failure(error) =>
          failures()
          logger.warn(
            s"Could not delete unneeded objects of ${storage.location.root}; a later round tries again",
            error
          )
      }
      ended.success(())
    }
  }

  private def round(): Future[RoundEnd] = {
    val before = state.get.view
    if (!hasWork(before)) Future.successful(NoWork)
    else for {
      endedPins <- refresh()
      plan = RetentionPlan.of(state.get.view.asPurgedIn(before), limits)
      unreadable <- readAll(plan.read)
      delete = plan.delete.filterNot(unreadable)
      unneeded = state.change(_.releaseWith(delete)).unneeded
      // If the run dies before it deletes the others, which no entry names any more, the sweep of a later run finds them.
      files = unneeded.take(limits.files)
      _ <- if (state.get.mayDelete) deleter.delete(files, delete) else Future.unit
      _ <- claims.deletePins(endedPins)
    } yield {
      state.change(_.deleted(delete).filesDeleted(files)): Unit
      val left = hasWork(state.get.view)
      val isPart = delete.nonEmpty || files.size < unneeded.size || plan.read.exists(!unreadable(_))
      if (left && isPart) Progress else Done
    }
  }

  /** Updates the view with what others have changed: claims, pins, and remaining entries. Returns the names of ended pins. */
  private def refresh(): Future[Vector[String]] = {
    val hasForeign = state.get.view.hasForeign
    for {
      (fences, pins) <- claims.fencesAndPins()
      there <- if (hasForeign) storage.batches().map(Some(_)) else Future.successful(None)
    } yield {
      val now = runtime.timer.nowNanos
      state.update { of =>
        val listed = of.pins.listed(pins, pinMaxMillis, now)
        val kept = of.view.fencedAt(fences).pinnedAt(listed.batches(now))
        of.copy(view = there.fold(kept)(batches => kept.seenOnStorage(batches.toSet)), pins = listed)
      }.pins.ended(now)
    }
  }

  /** Reads entries, a few at a time, and returns those that could not be read. */
  private def readAll(batches: Vector[Long]): Future[Set[Long]] =
    EntryReader.fewAtOnce(batches)(read).map(_.toSet)

  private def read(batch: Long): Future[Option[Long]] =
    entries.read(batch, state.get.view.lengthOf(batch)).transform {
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

  /** Whether a round may delete something. Pins do not count: only a round can see that one has ended. */
  private def hasWork(view: LogView): Boolean =
    view.unneeded.nonEmpty || !RetentionPlan.of(view.pinnedAt(Set.empty), limits).isEmpty
}

private object RetentionRounds {
  private val logger = LoggerFactory.getLogger(classOf[RetentionRounds])

  private sealed trait RoundEnd
  private case object NoWork extends RoundEnd

  /** The round has made progress, and work is left. */
  private case object Progress extends RoundEnd
  private case object Done extends RoundEnd

  private val PauseMillis = 2000L

  /** After rounds that fail in a row, for example because the query may not delete. */
  private val LongestPauseMillis = 600000L
}
