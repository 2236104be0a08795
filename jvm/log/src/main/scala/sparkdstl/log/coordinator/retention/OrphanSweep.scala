// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.retention

import java.util.concurrent.TimeUnit

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.util.{Failure, Success}

import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import sparkdstl.log.coordinator.ownership.Claims
import sparkdstl.log.coordinator.view.{GuardedState, SweepState}
import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.format.LogLayout
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.StoredObject

/**
 * Deletes files of runs of lower epochs, once per run: data files that no commit entry names, unfinished files, empty
 * directories, and obsolete claims.
 *
 * The sweep begins after the first commit of this run. Before it, a paused predecessor may still commit the batch and name its
 * files; afterwards storage refuses the entry of any run of a lower epoch.
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

  /** Begins the sweep after a commit, unless it is done, under way, blocked, or has just failed. */
  def request(): Unit = {
    val ended = Promise[Unit]()
    val begins = state.modify { of =>
      val failures = of.sweep match {
        case SweepState.Due(before, notBefore) if runtime.timer.nowNanos - notBefore >= 0 => Some(before)
        case SweepState.BlockedBy(batch) if !of.view.entries.contains(batch) => Some(0)
        case _ => None
      }
      if (of.isAtWork && failures.nonEmpty) (of.copy(sweep = SweepState.UnderWay(ended.future)), failures)
      else (of, None)
    }
    begins.foreach(failures =>
      sweep().onComplete { outcome =>
        val next = outcome match {
          case Success(count) =>
            if (count > 0)
              logger.info(s"Deleted $count uncommitted files and empty directories of earlier runs in ${location.base}")
            SweepState.Done
          case Failure(damaged: DamagedEntry) =>
            logger.warn(
              s"Uncommitted files of earlier runs stay in ${location.base} until the entry of batch ${damaged.batch} is deleted: it is " +
                s"unknown which data files it names. ${damaged.getCause.getMessage}"
            )
            SweepState.BlockedBy(damaged.batch)
          case Failure(error) =>
            val delay = math.min(FirstDelayMillis << math.min(failures, 10), LongestDelayMillis)
            logger.warn(
              s"Could not delete uncommitted files of earlier runs in ${location.base}; the next try is in $delay ms",
              error
            )
            SweepState.Due(failures + 1, runtime.timer.nowNanos + TimeUnit.MILLISECONDS.toNanos(delay))
        }
        state.update(_.copy(sweep = next)): Unit
        ended.success(())
      }
    )
  }

  /** Completes when no sweep is under way. */
  def whenIdle: Future[Unit] = state.get.sweep match {
    case SweepState.UnderWay(ended) => ended
    case _ => Future.unit
  }

  /** @return the number of deleted files and directories */
  private def sweep(): Future[Int] =
    for {
      orphans <- orphanedDataFiles()
      _ <- storage.delete(orphans, Nil)
      _ <- claims.deleteObsolete()
    } yield orphans.size

  private def orphanedDataFiles(): Future[Vector[Path]] =
    for {
      (published, others) <- storage.dataFiles()
      earlier = published.filter(isOfLowerEpoch)
      named <- if (earlier.isEmpty) Future.successful(Set.empty[String]) else namedFiles()
      view = state.get.view
    } yield earlier.map(_.path).filterNot { path =>
      val name = LogLayout.nameOf(path)
      named(name) || view.files.isNamed(name)
    }.toVector ++
      others.filter(isOfLowerEpoch).map(_.path)

  private def isOfLowerEpoch(stored: StoredObject): Boolean = {
    val directory = if (stored.isEmptyDirectory) stored.path else stored.path.getParent
    LogLayout.parseDataDirectory(directory.getName).exists { case (of, _) => of < state.get.view.epoch }
  }

  /**
   * The data files that the entries on storage name; `known` are those of entries that were read before. If an entry in the
   * list does not exist any more, another run may have deleted it while this one was paused, and may name its files in newer
   * entries. So the entries are listed again, until all those in one list have been read.
   */
  private def namedFiles(known: Map[Long, Set[String]] = Map.empty): Future[Set[String]] =
    for {
      objects <- storage.entries()
      batches = LogLayout.batchesIn(objects)
      lengths = LogLayout.bytesIn(objects)
      found <- EntryReader.fewAtOnce(batches.filterNot(known.contains))(batch => filesOf(batch, lengths(batch)))
      read = known ++ found
      named <-
        if (batches.forall(read.contains)) Future.successful(read.valuesIterator.flatten.toSet) else namedFiles(read)
    } yield named

  /** The batch of an entry and the data files that the entry names; None if there is no entry. */
  private def filesOf(batch: Long, length: Long): Future[Option[(Long, Set[String])]] =
    entries.read(batch, Some(length)).map {
      case EntryFound.Absent => None
      case found => Some(batch -> found.logged.fold(Set.empty[String])(_.index.files))
    }.recoverWith { case error: DamagedLogException => Future.failed(new DamagedEntry(batch, error)) }

  private class DamagedEntry(val batch: Long, cause: DamagedLogException) extends RuntimeException(cause)
}
