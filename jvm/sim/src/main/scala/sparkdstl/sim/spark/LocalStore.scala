// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.spark

import java.io.IOException

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.FoundSegment
import sparkdstl.log.transport.{FromDriver, SealedPart, SealedSegment}
import sparkdstl.log.worker.{SealedStore, SnapshotSchedule, SnapshotUploads, StateAttempts}
import sparkdstl.log.worker.{LocalStore => DroppedStore, StoreSnapshot, TaskWriter, UploadedFiles}
import sparkdstl.sim.model.{Change, Lineage, LineageFiles, Names, SnapshotPiece, SnapshotZip, StoreNames, Win}
import sparkdstl.sim.wiring.{ExecutorLog, WrittenSegment}
import sparkdstl.sim.world.World

/** A version of a store on local disk. */
final case class LocalState(version: Long, id: Option[String], lineage: Lineage)

/**
 * A store of one run on one executor, like the adapter's database with its materialization: it remembers which attempt has
 * left its local state, makes snapshots on schedule, and adds them to the log with later seals.
 */
final class LocalStore(val directory: String, log: ExecutorLog, files: SparkFiles, world: World)
    extends DroppedStore {
  import log.environment
  import world.{config, reach, verdict}
  private implicit val executor: ExecutionContext = environment.inline

  private val attempts = new StateAttempts
  private val schedule = new SnapshotSchedule(environment.options, config.constants.minDeltas, environment.runtime)
  private val uploaded = new UploadedFiles
  private var current = Option.empty[LocalState]
  private var holder = Option.empty[Long]
  private var underWay = Option.empty[Work]
  private var missed = false
  private var wasOverdue = false
  private var retentionDue = true
  private var closed = false

  log.worker.register(directory, this)

  /** A snapshot on its way into the log. */
  private final class Work(val state: LocalState, val transit: StoreSnapshot) extends SealedStore {
    val pieces: Vector[SnapshotPiece] = LineageFiles.encode(state.lineage)
    var named = Vector.empty[(String, SealedSegment)]
    var failures = 0

    override def carried(batch: Long): Vector[SealedSegment] = transit.carry(batch)
    override def accepted(carried: Boolean, notTaken: Option[Vector[String]]): Unit =
      sealTaken(this, carried, notTaken)
    override def givenUp(): Unit = sealGivenUp(this)
  }

  /** Acquires the store for one attempt, like Spark's database; false while another attempt has it. */
  def acquire(attempt: Long): Boolean = {
    if (holder.isEmpty) holder = Some(attempt)
    holder.contains(attempt)
  }

  def release(attempt: Long): Unit = if (holder.contains(attempt)) holder = None

  override def drop(attempt: Long): Unit = {
    verdict.note(s"${environment.process.name} drops $directory of attempt $attempt")
    attempts.drop(attempt)
  }

  /** The base of the next changes and the attempt that left it here; None if it was read from storage. */
  def load(version: Long, id: Option[String]): Future[(LocalState, Option[Long])] = {
    val there = current.filter(of => of.version == version && (id.isEmpty || of.id == id))
    val base = there.flatMap(_ => attempts.of(version))
    val local = there.filterNot(_ => base.exists(attempts.isDropped))
    if (there.nonEmpty && local.isEmpty) reach.met("dropped-state-is-loaded-again")
    val kept = local.flatMap(_ => base)
    if (kept.isEmpty) attempts.forgetFrom(version)
    local match {
      case Some(state) => Future.successful(state -> kept)
      case None =>
        abandon()
        current = None
        new StoreLoad(this, log, files, world).load(version, id).flatMap { loaded =>
          val state = LocalState(version, id, loaded.lineage)
          current = Some(state)
          retentionDue = true
          wasOverdue = false
          log.worker.epoch().map { epoch =>
            val runsSince = epoch.fold(0L)(_ - loaded.epoch)
            val loads = log.worker.loaded(directory)
            schedule.loaded(loaded.bytes, version - loaded.from, loaded.replayedBytes, runsSince, loads)
            state -> None
          }
        }
    }
  }

  /** Writes the changes of an attempt and commits them locally: the local state is this attempt's, even if it loses. */
  def commit(writer: TaskWriter, base: (LocalState, Option[Long]), change: Change, id: Option[String]): Future[Win] = {
    val (from, baseAttempt) = base
    val length = if (world.chance.happens(0.3)) world.chance.between(200, 1500) else world.chance.between(40, 120)
    val next = LocalState(from.version + 1, id, from.lineage + change.tag)
    val overdue = config.logsSnapshots && schedule.isOverdue
    val isPartOfCommit = change.needsSnapshot || overdue
    val isDue = config.logsSnapshots && (schedule.isDue || missed) && underWay.isEmpty
    val changelog = WrittenSegment(key(next, SegmentKind.Changelog), baseAttempt, Change.encode(change, length))
    val (snapshot, stored) = if (isPartOfCommit) partOfCommit(next) else (Vector.empty, Vector.empty)
    if (overdue) {
      reach.met("snapshot-is-part-of-a-commit-because-it-is-overdue")
      if (wasOverdue) verdict.violate(s"snapshots of $directory are part of two commits one after the other")
    }
    wasOverdue = overdue
    if (stored.nonEmpty) reach.met("snapshot-part-of-a-commit-names-earlier-files")
    log.write(writer, changelog +: snapshot, stored).map { _ =>
      current = Some(next)
      attempts.remember(next.version, writer.attempt)
      underWay.foreach(writer.carryFor(directory, _))
      schedule.committed(changelog.bytes.length.toLong, changes = true)
      if (isPartOfCommit || isDue) schedule.taken(LineageFiles.encode(next.lineage).map(_.content.length.toLong).sum)
      if (isDue && !isPartOfCommit) begin(next)
      release(writer.attempt)
      Win(writer.attempt, change, id)
    }
  }

  /** A forced snapshot: the segments to write, and its files that are in data files already. */
  private def partOfCommit(state: LocalState): (Vector[WrittenSegment], Vector[SealedSegment]) = {
    val pieces = LineageFiles.encode(state.lineage)
    val stored = pieces.flatMap(piece => uploadedFile(piece))
    val written = pieces.filter(uploadedFile(_).isEmpty)
      .map(piece => WrittenSegment(keyOf(piece, state.version), None, piece.content))
    (WrittenSegment(key(state, SegmentKind.Snapshot), None, SnapshotZip.encode(pieces)) +: written, stored)
  }

  /** A file that the log has; none with plain snapshots, because stock Spark uploads each file. */
  private def uploadedFile(piece: SnapshotPiece): Option[SealedSegment] =
    uploaded.of(piece.name).filter(_ => config.logsSnapshots)

  private def key(state: LocalState, kind: SegmentKind): SegmentKey =
    LocalStore.key(directory, state.version, state.id, kind)

  private def keyOf(piece: SnapshotPiece, version: Long): SegmentKey =
    LocalStore.key(directory, version, Some(piece.name), SegmentKind.SnapshotFile)

  private def sealTaken(work: Work, carried: Boolean, notTaken: Option[Vector[String]]): Unit = {
    if (carried) reach.met(notTaken.fold("carried-snapshot-taken")(files =>
      if (files.isEmpty) "carried-snapshot-finds-no-room" else "carried-snapshot-lacks-files"
    ))
    verdict.note(
      s"the snapshot of version ${work.state.version} of $directory ${if (carried) "was" else "was not"} carried; not taken: $notTaken"
    )
    work.transit.accepted(carried, notTaken) match {
      case StoreSnapshot.Fate.Pending =>
      case StoreSnapshot.Fate.Held =>
        work.named.foreach { case (name, segment) => uploaded.note(name, segment) }
        uploaded.retain(work.pieces.map(_.name).toSet)
        keep(work.pieces)
        retentionDue = true
        ended(work)
      case StoreSnapshot.Fate.Missing(gone) =>
        uploaded.forget(gone)
        lost(work)
    }
  }

  private def sealGivenUp(work: Work): Unit = {
    work.transit.givenUp()
    if (!work.transit.isUnderWay && underWay.contains(work)) {
      reach.met("carried-snapshot-is-given-up")
      lost(work)
    }
  }

  private def abandon(): Unit = underWay.foreach { work =>
    reach.met("snapshot-abandoned")
    verdict.note(s"the snapshot of version ${work.state.version} of $directory is abandoned")
    work.transit.abandon()
    lost(work)
  }

  /** Unloads the store. */
  def close(): Unit = {
    closed = true
    log.worker.unregister(directory, this)
    abandon()
  }

  private def lost(work: Work): Unit = {
    missed = true
    ended(work)
  }

  private def ended(work: Work): Unit = {
    work.transit.abandon()
    if (underWay.contains(work)) underWay = None
  }

  private def begin(state: LocalState): Unit = if (!closed) {
    val work = new Work(state, new StoreSnapshot(state.version))
    verdict.note(s"a snapshot of version ${state.version} of $directory begins")
    underWay = Some(work)
    missed = false
    upload(work)
  }

  private def upload(work: Work): Unit = {
    val ended = log.worker.snapshotUploads().flatMap {
      case None => Future.successful(lost(work))
      case Some(uploads) =>
        work.transit.restart()
        upload(work, uploads)
    }
    world.watch(environment.process, s"the snapshot of $directory", ended).failed.foreach(failed(work, _))
  }

  private def upload(work: Work, uploads: SnapshotUploads): Future[Unit] = {
    val zip = SnapshotZip.encode(work.pieces, config.constants.zipBytes)
    val zipKey = key(work.state, SegmentKind.Snapshot)
    def named(key: SegmentKey, bytes: Array[Byte]): Future[SealedSegment] = for {
      chunks <- Future.sequence(bytes.grouped(environment.options.preemptivePersistThreshold.toInt).toVector.map { part =>
        uploads.put(key, part).map { chunk =>
          work.transit.uploads(chunk)
          chunk
        }
      })
      places <- Future.sequence(chunks.map(_.location))
    } yield SealedSegment(key, None, places.map(at => SealedPart.Stored(at)))
    val pieces = Future.sequence(work.pieces.map { piece =>
      uploaded.of(piece.name).fold(named(keyOf(piece, work.state.version), piece.content))(Future.successful)
        .map(piece.name -> _)
    })
    val ofZip =
      if (zip.length <= environment.options.inlineMaxSegmentSize)
        Future.successful(SealedSegment(zipKey, None, Vector(SealedPart.Inline(zip))))
      else named(zipKey, zip)
    for (files <- pieces; zip <- ofZip) yield {
      work.named = files
      work.transit.complete(zip +: files.map(_._2))
    }
  }

  private def failed(work: Work, error: Throwable): Unit =
    if (!work.transit.isUnderWay) ended(work)
    else {
      verdict.note(s"a snapshot of $directory fails: $error")
      work.failures += 1
      if (work.failures < environment.options.materializeMaxFailures) {
        reach.met("snapshot-is-uploaded-again")
        environment.runtime.timer.schedule(1000L << work.failures)(() => upload(work)): Unit
      } else ended(work)
    }

  /** Deletes plain files of stock Spark once no retained version needs them. */
  def maintain(): Future[Unit] =
    if (!retentionDue) Future.unit
    else {
      retentionDue = false
      log.versions(directory).flatMap { there =>
        if (there.plainUpTo == 0 || there.lowest <= there.plainUpTo) Future.unit
        else files.list(s"${Names.State}/$directory").flatMap { all =>
          if (all.nonEmpty) reach.met("plain-files-deleted")
          files.delete(all.filter(Names.isPlainState))
        }
      }.recover { case _: IOException => retentionDue = true }
    }

  /** Reads the files of a snapshot. */
  def read(zip: FoundSegment): Future[Vector[Array[Byte]]] = for {
    content <- log.content(zip)
    names = written(SnapshotZip.decode(content), zip.segment.key.relativePath)
    pieces <- Future.sequence(names.map { name =>
      zip.in.snapshotFile(directory, name + SegmentKind.SnapshotFile.suffix) match {
        case None => Future.failed(new IOException(s"$name of ${zip.segment.key.relativePath} is not in its entry"))
        case Some(segment) =>
          uploaded.note(name, segment)
          contentOf(name, FoundSegment(zip.in, segment)).map { content =>
            written(Some(SnapshotPiece(name, content)).filter(LineageFiles.isWhole), name)
          }
      }
    })
  } yield {
    keep(pieces)
    pieces.map(_.content)
  }

  /** The decoded content of bytes from the log, which must be valid: the log verifies every byte. */
  def written[T](decoded: Option[T], what: String): T = decoded.getOrElse {
    val problem = s"$what in ${environment.process.name} was read as something else"
    verdict.violate(problem)
    throw new IOException(problem)
  }

  /** Reads a file from the local disk if it is cached there, or from the log. */
  private def contentOf(name: String, found: FoundSegment): Future[Array[Byte]] =
    environment.kept.find(directory, name)(stream => log.reader.isContent(found, stream)) match {
      case Some(here) =>
        reach.met("snapshot-file-is-on-the-local-disk")
        Future.successful(environment.disk.open(here).readAllBytes())
      case None => log.content(found)
    }

  /** Caches the files of a snapshot; the store's own copies are deleted with its local state. */
  private def keep(pieces: Vector[SnapshotPiece]): Unit =
    try {
      val disk = environment.disk
      val own = pieces.map(piece => piece.name -> disk.writeNow(s"$directory/${piece.name}", piece.content))
      environment.kept.put(directory, own.toMap, disk.near, LocalStore.KeptBytes)
      own.foreach { case (_, file) => disk.delete(file) }
    } catch { case _: IOException => () }
}

object LocalStore {

  /** The size of a process's cache of snapshot files: less than all stores need. */
  private val KeptBytes = 1500L

  def key(directory: String, version: Long, qualifier: Option[String], kind: SegmentKind): SegmentKey =
    SegmentKey(0, StoreNames.partitionOf(directory), StoreNames.nameOf(directory), version, qualifier, kind)

  /** Whether the load of a version may need snapshots of stock Spark. */
  def needsPlain(there: FromDriver.Versions, version: Long): Boolean = there.plainUpTo != 0 &&
    !there.snapshots.exists(of => of.version <= version && of.version >= there.plainUpTo)
}
