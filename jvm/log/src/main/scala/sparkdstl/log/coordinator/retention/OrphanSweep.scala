package sparkdstl.log.coordinator.retention

import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future}
import scala.util.{Failure, Success}

import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.coordinator.view.{GuardedState, SweepState}
import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.format.LogLayout
import sparkdstl.log.read.EntryReader
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.StoredObject

/**
 * Deletes what runs of lower epochs left behind: data files that no commit entry names, unfinished files beside them, and
 * claims that fence nothing. Once for each run.
 *
 * Begins only after a commit entry of this run exists. Before that, a paused predecessor may still commit the batch and name
 * its files; afterwards no run of lower epoch can: the entry that it would have to create exists.
 */
private[coordinator] final class OrphanSweep(
    storage: QueryStorage,
    entries: EntryReader,
    claims: Claims,
    state: GuardedState
) {
  private val logger = LoggerFactory.getLogger(classOf[OrphanSweep])
  private final val FirstDelayMillis = 10000L
  private final val LongestDelayMillis = 600000L
  import storage.{location, runtime}
  private implicit val executor: ExecutionContext = runtime.executor

  /** A batch was committed: the sweep begins unless it is done, under way, blocked, or has just failed. */
  def request(): Unit = {
    val begins = state.modify { of =>
      val failures = of.sweep match {
        case SweepState.Due(before, notBefore) if runtime.timer.nowNanos - notBefore >= 0 => Some(before)
        case SweepState.BlockedBy(batch) if !of.view.entries.contains(batch) => Some(0)
        case _ => None
      }
      if (of.isAtWork && failures.nonEmpty) (of.copy(sweep = SweepState.UnderWay), failures) else (of, None)
    }
    begins.foreach(failures =>
      sweep().onComplete { outcome =>
        val next = outcome match {
          case Success(count) =>
            if (count > 0) logger.info(s"Deleted $count files in ${location.base} that earlier runs left uncommitted")
            SweepState.Done
          case Failure(damaged: DamagedEntry) =>
            logger.warn(
              s"What earlier runs left in ${location.base} stays until the entry of batch ${damaged.batch} is deleted: it is " +
                s"unknown which data files it names. ${damaged.getCause.getMessage}"
            )
            SweepState.BlockedBy(damaged.batch)
          case Failure(error) =>
            val delay = math.min(FirstDelayMillis << math.min(failures, 10), LongestDelayMillis)
            logger.warn(
              s"Could not delete what earlier runs left in ${location.base}; the next try is in $delay ms",
              error
            )
            SweepState.Due(failures + 1, runtime.timer.nowNanos + TimeUnit.MILLISECONDS.toNanos(delay))
        }
        state.update(_.copy(sweep = next)): Unit
      }
    )
  }

  /** @return how many data files were deleted */
  private def sweep(): Future[Int] =
    for {
      orphans <- orphanedDataFiles()
      _ <- storage.delete(orphans, Nil)
      _ <- claims.deleteObsolete()
    } yield orphans.size

  private def orphanedDataFiles(): Future[Vector[Path]] =
    for {
      (published, unpublished) <- storage.dataFiles()
      others = published.filter(isOfLowerEpoch)
      named <- if (others.isEmpty) Future.successful(Set.empty[String]) else namedFiles()
      view = state.get.view
    } yield others.map(_.path).filterNot(path => named(nameOf(path)) || view.files.isNamed(nameOf(path))).toVector ++
      unpublished.filter(isOfLowerEpoch).map(_.path)

  private def isOfLowerEpoch(stored: StoredObject): Boolean =
    LogLayout.parseDataDirectory(stored.path.getParent.getName).exists { case (of, _) => of < state.get.view.epoch }

  private def nameOf(path: Path): String =
    s"${LogLayout.DataDirectory}/${path.getParent.getName}/${path.getName}"

  /** Data files that any entry on storage names. An entry that is deleted meanwhile needs none. */
  private def namedFiles(): Future[Set[String]] =
    storage.batches().flatMap(_.foldLeft(Future.successful(Set.empty[String])) { (before, batch) =>
      before.flatMap(named =>
        entries.read(batch).map(_.logged.fold(named)(named ++ _.index.files))
          .recoverWith { case error: DamagedLogException => Future.failed(new DamagedEntry(batch, error)) }
      )
    })

  private class DamagedEntry(val batch: Long, cause: DamagedLogException) extends RuntimeException(cause)
}
