// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.spark

import java.io.IOException

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.SegmentKind
import sparkdstl.log.read.FoundSegment
import sparkdstl.log.transport.SnapshotPlace
import sparkdstl.sim.model.{Change, Lineage, LineageFiles, Names}
import sparkdstl.sim.wiring.ExecutorLog
import sparkdstl.sim.world.World

/**
 * A state that was read from storage.
 *
 * @param from the version of the snapshot that the replay began with; 0 if there was none
 * @param bytes the size of that snapshot
 * @param epoch the epoch of the run whose entry holds the snapshot; 0 if none does
 */
final case class LoadedState(lineage: Lineage, from: Long, bytes: Long, epoch: Long, replayedBytes: Long)

/** One load of a store from storage: the newest readable snapshot and the changelogs after it. */
final class StoreLoad(store: LocalStore, log: ExecutorLog, files: SparkFiles, world: World) {
  import world.{reach, verdict}
  private implicit val executor: ExecutionContext = log.environment.inline
  private val directory = store.directory

  private type Snapshot = (Long, Option[String])

  def load(version: Long, id: Option[String]): Future[LoadedState] =
    if (version == 0) Future.successful(LoadedState(Lineage.Empty, 0, 0, 0, 0))
    else
      for {
        there <- log.versions(directory)
        // With stock Spark's provider name snapshots are files.
        needsPlain = !world.config.logsSnapshots || LocalStore.needsPlain(there, version)
        plain <- if (needsPlain) plainSnapshots() else Future.successful(Set.empty[Snapshot])
        logged = there.snapshots.map(place => (place.version, place.id) -> place).toMap
        _ = log.reader.prefetch(math.max(0, version - 3) until version)
        state <- rebuild(version, id, plain, logged)
      } yield {
        world.model.loaded(log.environment.process.name, log.run.run, directory, version, state.lineage)
        state
      }

  private def plainSnapshots(): Future[Set[Snapshot]] =
    files.list(s"${Names.State}/$directory").map(_.flatMap(Names.snapshotOf).toSet)

  private def rebuild(
      version: Long,
      id: Option[String],
      plain: Set[Snapshot],
      logged: Map[Snapshot, SnapshotPlace]
  ): Future[LoadedState] = {
    val here = (version, id)
    if (version == 0) Future.successful(LoadedState(Lineage.Empty, 0, 0, 0, 0))
    else if (logged.contains(here) || plain(here))
      (if (logged.contains(here)) fromLog(logged(here)) else fromFile(here)).recoverWith { case error: IOException =>
        // Like Spark, the load skips an unreadable snapshot and uses an earlier one and more changelogs.
        verdict.note(s"${log.environment.process.name} skips a snapshot: $error")
        reach.met("snapshot-skipped")
        rebuild(version, id, plain - here, logged - here)
      }
    else replay(version, id, plain, logged)
  }

  private def fromLog(place: SnapshotPlace): Future[LoadedState] =
    log.reader.held(LocalStore.key(directory, place.version, place.id, SegmentKind.Snapshot), place.batch).flatMap {
      case None => Future.failed(new IOException(s"snapshot ${place.version} of $directory is no longer in the log"))
      case Some(zip) =>
        if (place.batch >= place.version) reach.met("snapshot-loaded-from-a-later-entry")
        fromZip(place.version, zip)
    }

  /** Loads a snapshot by its file name: the entry of the version's batch may hold it, or it is a plain file. */
  private def fromFile(snapshot: Snapshot): Future[LoadedState] = {
    val (version, id) = snapshot
    val key = LocalStore.key(directory, version, id, SegmentKind.Snapshot)
    log.reader.open(key).flatMap {
      case Some(zip) => fromZip(version, zip)
      case None => log.readFile(key).map {
          case Some(bytes) =>
            reach.met("plain-snapshot-loaded")
            LoadedState(Lineage.decode(bytes), version, bytes.length.toLong, 0, 0)
          case None => throw new IOException(s"snapshot $version of $directory is gone")
        }
    }
  }

  private def fromZip(version: Long, zip: FoundSegment): Future[LoadedState] = store.read(zip).map { pieces =>
    LoadedState(LineageFiles.decode(pieces), version, pieces.map(_.length.toLong).sum, zip.in.index.writer.epoch, 0)
  }

  private def replay(
      version: Long,
      id: Option[String],
      plain: Set[Snapshot],
      logged: Map[Snapshot, SnapshotPlace]
  ): Future[LoadedState] = {
    val wanted = LocalStore.key(directory, version, id, SegmentKind.Changelog)
    log.read(wanted).flatMap { found =>
      found.map(bytes => store.written(Change.decode(bytes), wanted.relativePath)) match {
        case None => Future.failed(new IOException(s"${wanted.relativePath} does not exist"))
        case Some(change) if change.needsSnapshot =>
          Future.failed(new IOException(s"${wanted.relativePath} cannot be replayed, and its snapshot is not there"))
        case Some(change) => rebuild(version - 1, change.baseId, plain, logged).map(before =>
            before.copy(
              lineage = before.lineage + change.tag,
              replayedBytes = before.replayedBytes + found.get.length
            )
          )
      }
    }
  }
}
