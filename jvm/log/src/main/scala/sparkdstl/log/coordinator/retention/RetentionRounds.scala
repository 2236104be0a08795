package sparkdstl.log.coordinator.retention

import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.coordinator.view.{GuardedState, LogView, RetentionLimits, RetentionPlan, RoundState}
import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.read.EntryReader
import sparkdstl.log.request.QueryStorage

/**
 * Deletes the entries and data files that [[RetentionPlan]] names, in the background: one round at a time, of bounded size.
 *
 * Before a round deletes anything it lists the claims of other runs, so that entries which fence a paused run stay. A round
 * that has left nothing to do is followed by a pause, so that a query with quick batches does not list for each of them. What
 * fails is tried again in a later round.
 *
 * @param onFailure called with the error of each round that failed
 */
private[coordinator] final class RetentionRounds(
    storage: QueryStorage,
    state: GuardedState,
    deleter: Deleter,
    entries: EntryReader,
    claims: Claims,
    limits: RetentionLimits,
    onFailure: Throwable => Unit
) {
  import RetentionRounds._
  import storage.runtime
  private implicit val executor: ExecutionContext = runtime.executor

  /** Something has changed: a round begins if there is something to do. */
  def request(): Unit = {
    val next: Next = state.modify { of =>
      val left = of.round match {
        case RoundState.Idle(notBefore) if of.mayDelete && mayHaveWork(of.view) =>
          val pauseNanos = if (of.isAtWork) notBefore - runtime.timer.nowNanos else 0L
          Some(TimeUnit.NANOSECONDS.toMillis(math.max(0L, pauseNanos)))
        case _ => None
      }
      left match {
        case None => (of, Nothing)
        case Some(0L) =>
          val ended = Promise[Unit]()
          (of.copy(round = RoundState.UnderWay(ended.future)), Round(ended))
        case Some(millis) => (of.copy(round = RoundState.Planned), Later(millis))
      }
    }
    next match {
      case Nothing =>
      case Later(millis) =>
        runtime.timer.schedule(millis) { () =>
          state.update(of => if (of.round == RoundState.Planned) of.copy(round = RoundState.Idle(0L)) else of): Unit
          request()
        }: Unit
      case Round(ended) => begin(ended)
    }
  }

  /** The round that is under way. */
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
        case Failure(error) => onFailure(error)
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

  /** What other runs have changed on storage: their claims, and which of their entries are still there. */
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

  /** Reads entries, some at a time. Returns those that could not be read, which hold up none of the others. */
  private def readAll(batches: Vector[Long]): Future[Set[Long]] =
    batches.grouped(ReadsAtOnce).foldLeft(Future.successful(Set.empty[Long])) { (before, some) =>
      before.flatMap(failed => Future.sequence(some.map(read)).map(failed ++ _.flatten))
    }

  private def read(batch: Long): Future[Option[Long]] = entries.read(batch).transform {
    case Success(found) =>
      state.change(_.read(batch, found)): Unit
      Success(None)
    // The data files that it names are left to a later run.
    case Failure(_: DamagedLogException) =>
      state.change(_.damaged(batch)): Unit
      Success(None)
    case Failure(error) =>
      logger.warn(s"Could not read the entry of batch $batch of ${storage.location.root}; it is deleted later", error)
      Success(Some(batch))
  }

  /** Costs nothing, where [[hasWork]] looks at each store. */
  private def mayHaveWork(view: LogView): Boolean = view.unneeded.nonEmpty || view.requested.exists(!view.fences(_))

  private def hasWork(view: LogView): Boolean = view.unneeded.nonEmpty || !RetentionPlan.of(view, limits).isEmpty
}

private object RetentionRounds {
  private val logger = LoggerFactory.getLogger(classOf[RetentionRounds])

  private sealed trait Next
  private case object Nothing extends Next
  private final case class Round(ended: Promise[Unit]) extends Next
  private final case class Later(millis: Long) extends Next

  private sealed trait RoundEnd
  private case object NoWork extends RoundEnd

  /** There is more to do. */
  private case object Progress extends RoundEnd
  private case object Done extends RoundEnd

  private val PauseMillis = 2000L
  private val ReadsAtOnce = 8
}
