// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.util.UUID

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.coordinator.view.{GuardedState, RetentionPlan, RunPhase, SnapshotIndex}
import sparkdstl.log.error.{FencedException, ProtocolErrors}
import sparkdstl.log.format._
import sparkdstl.log.read.{EntryFound, EntryReader}
import sparkdstl.log.request.{Creation, Deadline, QueryStorage}

/**
 * Creates commit entries: the one write that decides which run commits a batch. If storage does not create exclusively, the
 * writer also reads the newest entries before and after.
 */
private[coordinator] final class EntryWriter(
    storage: QueryStorage,
    entries: EntryReader,
    writer: Writer,
    state: GuardedState,
    snapshots: SnapshotListing,
    listEvery: Long,
    plainSnapshots: Boolean
) {
  import storage.location
  private implicit val executor: ExecutionContext = storage.runtime.executor

  def checkpointIds(batch: Long, content: Array[Byte]): Set[String] =
    SparkEntry.checkpointIds(location.entry(batch), content).map(_._3).toSet

  /**
   * Creates the entry of `batch`, with `content` as Spark wrote it, and the checksum of its `offsets`. If the future fails with
   * DSTL_COMMIT_UNKNOWN, it is unknown whether the batch is committed; with [[sparkdstl.log.error.FencedException]], another
   * driver has committed it. With any other error the entry does not exist and never will.
   */
  def write(
      batch: Long,
      content: Array[Byte],
      offsets: Option[Int],
      segments: Vector[CommittedSegment],
      deadline: Deadline
  ): Future[EncodedEntry] =
    for {
      previous <- entryBefore(batch)
      _ <- snapshots.known()
      link = EntryLink(storage.runtime.random.nextUuid(), previous)
      before = state.get.view.snapshots.getOrElse(SnapshotIndex.empty)
      list = before.listFor(batch, segments, listEvery, plainSnapshots)
      base = location.configuredBase
      needsLog = segments.isEmpty && RetentionPlan.needsLog(state.get.view)
      entry = CommitEntry.encode(content, batch, link, writer, base, segments, Some(list), offsets, needsLog)
      now = state.get
      _ = if (now.phase != RunPhase.Committing) throw ProtocolErrors.runEnded(writer.run)
      _ <- if (now.exclusive) Future.unit else refuseIfReplaced(batch, previous)
      timeoutMillis = deadline.leftMillis
      // Else the outcome of a request that has no time would be unknown.
      _ = if (timeoutMillis <= 0) throw ProtocolErrors.commitTooLate(location.entry(batch), deadline.timeoutMillis)
      _ <- create(batch, entry, timeoutMillis)
      _ <- if (now.exclusive) Future.unit else readAgain(batch, entry)
    } yield entry

  /**
   * The id of the entry before `batch`. An entry that is not in the view was created by another driver after this run's claim:
   * the run is fenced.
   */
  private def entryBefore(batch: Long): Future[Option[UUID]] = {
    val view = state.get.view
    if (view.newest >= batch - 1) Future.successful(view.newestId.filter(_ => view.newest == batch - 1))
    else entries.read(batch - 1).map {
      case EntryFound.Absent => None
      case other => throw fencedBy(batch - 1, other)
    }
  }

  /** Reads the entry after its creation. If that fails, it is unknown whether the batch is committed. */
  private def readAgain(batch: Long, entry: EncodedEntry): Future[Unit] =
    refuseIfReplaced(batch + 1, entry.index.link.map(_.entry)).recoverWith {
      case fenced: FencedException => Future.failed(fenced)
      case error => Future.failed(ProtocolErrors.commitUnknown(location.entry(batch), storage.timeoutMillis, error))
    }

  private def create(batch: Long, entry: EncodedEntry, timeoutMillis: Long): Future[Unit] = {
    val path = location.entry(batch)
    val id = entry.index.link.map(_.entry)
    storage.checkpoint.create(path, entry.payload, timeoutMillis)(tail =>
      CommitEntry.entryId(path, tail) == id
    ).flatMap(_.ofWrite(path, storage.timeoutMillis)).flatMap {
      case Creation.Ours => Future.unit
      case _: Creation.Taken => entries.read(batch).recover { case _ => EntryFound.Absent }
          .flatMap(other => Future.failed(fencedBy(batch, other)))
    }
  }

  /** Fails unless the entry below `batch` has the id `known`, if one is known. */
  private def refuseIfReplaced(batch: Long, known: Option[UUID]): Future[Unit] =
    if (known.isEmpty) Future.unit
    else entries.read(batch - 1).flatMap {
      case EntryFound.Logged(entry) if entry.id == known => Future.unit
      case other => Future.failed(fencedBy(batch - 1, other))
    }

  private def fencedBy(batch: Long, found: EntryFound): FencedException =
    ProtocolErrors.fenced(location.entry(batch), found.logged.map(_.index.writer).map(other => other.run -> other.host))
}
