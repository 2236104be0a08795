package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.FileNotFoundException
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.config.HadoopOptions
import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.format.{SegmentKey, SegmentKind}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.dstl.driver.{DrivenRun, QueryStart, SkippedBatch, StreamThread}
import org.apache.spark.sql.execution.streaming.state.dstl.files.{
  ChangelogStream,
  CheckpointDirectory,
  CheckpointFiles,
  CurrentBatch,
  LoggedFiles,
  LoggedSnapshots,
  PartitionDirectories,
  PublishedFileStream,
  ReplayedSegment
}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.SparkVersion
import org.apache.spark.sql.execution.streaming.state.dstl.store.{
  BaseOfChanges,
  LoadErrors,
  LoadedSnapshot,
  PackedSnapshot,
  SnapshotNames
}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.{PastTheLog, RunOfTask, TaskLog, WorkedRun}

/**
 * Puts the log below Spark's checkpoint files. Set it as `spark.sql.streaming.checkpointFileManagerClass`.
 *
 * Changelogs and their checksum siblings never become files: they are segments in the log, and reading, listing, probing
 * and deleting them works as if they were files. So are snapshots, with [[DstlStateStoreProvider]]. A commit entry is
 * created only after the batch's segments are durable, and carries them. Everything else is a file of its own; every
 * request is retried and hedged. What is not in the log is looked for as a plain file, so a checkpoint of stock Spark can be continued.
 *
 * @param path          the directory that this file manager is for
 * @param configuration with the session's SQL configurations, from which the log's options are taken
 */
class DstlCheckpointFileManager(path: Path, configuration: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, configuration) {

  SparkVersion.check()

  private val environment = DstlEnvironment.get
  private val options = HadoopOptions.parse(configuration)
  private val directory = CheckpointDirectory.of(path, configuration)
  private val logsSnapshots = configuration.getBoolean(DstlCheckpointFileManager.LogsSnapshots, false)
  private val files = new CheckpointFiles(path, configuration, options, environment)

  // The run that belongs to this file manager, once its query has begun to use it.
  @volatile private var owned: Option[DrivenRun] = None
  @volatile private var told: Option[UUID] = None
  // What the newest listing of the directory has shown; only a changelog that was listed as a file is deleted as one.
  @volatile private var listed: Option[Set[String]] = None
  @volatile private var newestListed: Option[Long] = None

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    (directory, segmentOf(file), batchOf(file)) match {
      case (_: CheckpointDirectory.Store, _, _) if PackedSnapshot.isPacking =>
        PackedSnapshot.create(file).getOrElse(published(file, overwriteIfPossible))
      case (store: CheckpointDirectory.Store, Some(key), _) if isForLog(key) =>
        segment(store, key, file, overwriteIfPossible)
      // The log has a checksum of its own.
      case (store: CheckpointDirectory.Store, _, _) if SnapshotNames.isChecksum(file) && isInLog(store, file) =>
        PackedSnapshot.discarding()
      case (store: CheckpointDirectory.Store, _, _) =>
        PastTheLog.reasonFor(file.getName, configuration).foreach(why => runOf(store).worker.foreach(_.bypass(why)))
        published(file, overwriteIfPossible)
      case (CheckpointDirectory.Commits(root), _, Some(batch)) => commitEntry(root, file, batch)
      case (CheckpointDirectory.Offsets(root), _, Some(batch)) => offsetsEntry(root, file, batch)
      case (CheckpointDirectory.Source(root), _, _) if !overwriteIfPossible => sourceEntry(root, file)
      case _ => published(file, overwriteIfPossible)
    }

  /** A snapshot is written into the log where it is part of a commit: one that is not committed must never be found. */
  private def isForLog(key: SegmentKey): Boolean = isChangelog(key) || CurrentBatch.isAt(key.batch)

  private def isChangelog(key: SegmentKey): Boolean =
    key.kind == SegmentKind.Changelog || key.kind == SegmentKind.Checksum

  private def isInLog(store: CheckpointDirectory.Store, checksum: Path): Boolean =
    segmentOf(SnapshotNames.zipOf(checksum)).exists(isForLog) && WorkedRun.isLogged(Some(runOf(store)), options)

  override def open(file: Path): FSDataInputStream =
    (directory, segmentOf(file)) match {
      case (store: CheckpointDirectory.Store, Some(key)) =>
        LoadErrors.inFront {
          LoadedSnapshot.open(file).orElse(logged(runOf(store), key)).getOrElse(openPlain(runOf(store), key, file))
        }
      case (CheckpointDirectory.Offsets(root), _) =>
        PartitionDirectories.restoreForReader(root, configuration, options, environment)
        files.open(file)(super.open(file))
      case _ => LoadedSnapshot.open(file).getOrElse(files.open(file)(super.open(file)))
    }

  private def logged(run: WorkedRun, key: SegmentKey): Option[FSDataInputStream] =
    if (isChangelog(key)) ReplayedSegment.open(run, key, options.downloadThreads)
    else LoggedSnapshots.find(run, key).map(ReplayedSegment.stream(run, _))

  private def openPlain(run: WorkedRun, key: SegmentKey, file: Path): FSDataInputStream =
    try files.open(file)(super.open(file))
    catch {
      case missing: FileNotFoundException if key.kind == SegmentKind.Changelog =>
        throw environment.waiting.on(run.reader.explainMissing(key, missing))
    }

  override def exists(file: Path): Boolean =
    (directory, segmentOf(file), batchOf(file)) match {
      case (CheckpointDirectory.Commits(root), _, Some(batch)) =>
        !owner(root).exists(_.coordinator.knowsAbsent(batch)) && files.exists(file)(super.exists(file))
      case (CheckpointDirectory.Offsets(root), _, Some(batch)) =>
        !knowsNoOffsets(root, batch) && files.exists(file)(super.exists(file))
      case (store: CheckpointDirectory.Store, Some(key), _) =>
        if (isChangelog(key))
          !CurrentBatch.isAt(key.batch) &&
          (environment.waiting.on(runOf(store).reader.find(key)).nonEmpty || files.exists(file)(super.exists(file)))
        else LoggedSnapshots.find(runOf(store), key).nonEmpty || files.exists(file)(super.exists(file))
      case (CheckpointDirectory.Source(root), _, _) => sourceEntryExists(root, file)
      // Made in the first batch, if directories are anything there; a listing is content without it.
      case (_: CheckpointDirectory.Store, _, _) if isOwn(file) && CurrentBatch.get.exists(_ > 0) =>
        true
      case _ => files.exists(file)(super.exists(file))
    }

  override def list(directoryListed: Path, filter: PathFilter): Array[FileStatus] = {
    val isOwnDirectory = isOwn(directoryListed)
    // What is listed decides which batch comes next, so the run is claimed before.
    directory match {
      case CheckpointDirectory.Commits(root) => owner(root): Unit
      case _ =>
    }
    val found = listFiles(directoryListed, filter, mayBeMissing = isOwnDirectory)
    directory match {
      case _: CheckpointDirectory.Commits =>
        // Spark deletes in the order in which it is told: a purge of everything that met the newest before the oldest would
        // look like somebody who goes back.
        found.sortBy(status => batchOf(status.getPath))
      case offsets: CheckpointDirectory.Offsets if isOwnDirectory =>
        newestListed = Some(found.toVector.flatMap(status => batchOf(status.getPath)).maxOption.getOrElse(-1L))
        if (found.isEmpty && !QueryStart.ListsCommitsOfNew) begin(offsets.root): Unit
        found
      case _: CheckpointDirectory.Source if isOwnDirectory && newestListed.isEmpty =>
        newestListed = Some(found.toVector.flatMap(status => sourceBatchOf(status.getPath)).maxOption.getOrElse(-1L))
        found
      case store: CheckpointDirectory.Store if isOwnDirectory =>
        val wanted = LoggedFiles.wanted(directoryListed, filter).filter(mayBeInLog)
        val names = found.iterator.map(_.getPath.getName).toSet
        if (wanted(SegmentKind.Changelog)) listed = Some(names)
        val logged = LoggedFiles.of(runOf(store), store.storeDirectory, directoryListed, wanted)
          .filter(status => filter.accept(status.getPath))
        // A file of the same name, of an attempt that does not count, is not what opening it gives.
        val inLog = logged.iterator.map(_.getPath.getName).toSet
        found.filterNot(status => inLog(status.getPath.getName)) ++ logged
      case _ => found
    }
  }

  private def isOwn(directoryAsked: Path): Boolean = directoryAsked.toUri.getPath == path.toUri.getPath

  private def listFiles(directoryListed: Path, filter: PathFilter, mayBeMissing: Boolean): Array[FileStatus] =
    try files.list(directoryListed)(super.list(directoryListed, filter))
    catch {
      case missing: FileNotFoundException =>
        directory match {
          case _: CheckpointDirectory.Store if mayBeMissing => Array.empty
          case _ => throw missing
        }
    }

  override def delete(file: Path): Unit =
    (directory, segmentOf(file), batchOf(file)) match {
      case (store: CheckpointDirectory.Store, Some(key), _) =>
        runOf(store).worker.foreach(_.release(key.storeDirectory, key.version + 1))
        if (listed.forall(_(file.getName))) files.delete(file)(super.delete(file))
      case (CheckpointDirectory.Commits(root), _, Some(batch)) => deleteEntry(root, batch)
      case (_: CheckpointDirectory.Offsets, _, Some(_)) => files.deleteEntry(file)(super.delete(file))
      case _ => files.delete(file)(super.delete(file))
    }

  private def segment(
      store: CheckpointDirectory.Store,
      key: SegmentKey,
      file: Path,
      overwriteIfPossible: Boolean
  ): CancellableFSDataOutputStream = {
    val segment =
      if (options.logsChanges) TaskLog.begin(runOf(store), key, BaseOfChanges.get) else None
    if (segment.isEmpty && options.logsChanges) PastTheLog.warnOnce(store.root)
    segment.fold(published(file, overwriteIfPossible))(ChangelogStream(_))
  }

  /** The commit entry of a batch: closing it is the barrier. */
  private def commitEntry(root: Path, entry: Path, batch: Long): CancellableFSDataOutputStream =
    PublishedFileStream(
      content =>
        owner(root).orElse(ownBegun(root)) match {
          case Some(run) =>
            FailPoints.hit("driver.seals-pending", batch)
            if (!run.coordinator.hasSeals(batch))
              StreamThread.query.foreach(SkippedBatch.computeAgain(_, batch))
            environment.waiting.on(run.coordinator.commit(batch, content, run.reports.take(batch)))
            FailPoints.hit("driver.after-commit-entry", batch)
          case None =>
            files.refuseIfSealed(root, batch)
            files.create(entry, content)
        },
      () => throw new IllegalStateException(s"commit entry $entry is larger than ${PublishedFileStream.Limit} bytes")
    )

  /** Where another driver has written the entry, the error names it. */
  private def offsetsEntry(root: Path, entry: Path, batch: Long): CancellableFSDataOutputStream =
    PublishedFileStream(
      content => {
        if (driven(root).isEmpty) files.create(entry, content)
        else files.createOr(entry, content)(ProtocolErrors.begunByOther(entry, files.newestClaimant(root)))
        newestListed = newestListed.map(math.max(_, batch))
      },
      () => super.createAtomic(entry, false)
    )

  /** What a source has handed out is written before the batch is begun; so here two drivers that take turns meet first. */
  private def sourceEntry(root: Path, entry: Path): CancellableFSDataOutputStream =
    PublishedFileStream(
      content => {
        if (driven(root).isEmpty) files.create(entry, content)
        else files.createOr(entry, content)(ProtocolErrors.sourceTakenByOther(entry, files.newestClaimant(root)))
        newestListed = newestListed.map(math.max(_, sourceBatchOf(entry).getOrElse(-1L)))
      },
      () => super.createAtomic(entry, false)
    )

  /** An entry above those that were there, and that this source has written, is one that it is about to write. */
  private def sourceEntryExists(root: Path, entry: Path): Boolean = {
    val found = files.exists(entry)(super.exists(entry))
    val isNext = sourceBatchOf(entry).exists(batch => newestListed.exists(batch > _))
    if (found && isNext && entry.getParent == path && driven(root).nonEmpty)
      throw ProtocolErrors.sourceTakenByOther(entry, files.newestClaimant(root))
    found
  }

  /** Every tenth entry of a file source holds those before it as well. */
  private def sourceBatchOf(entry: Path): Option[Long] = entry.getName.stripSuffix(".compact").toLongOption

  private def published(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    PublishedFileStream(
      content => if (overwriteIfPossible) files.replace(file, content) else files.create(file, content),
      () => super.createAtomic(file, overwriteIfPossible)
    )

  private def deleteEntry(root: Path, batch: Long): Unit = environment.driver match {
    case Some(driver) =>
      driver.on(root).filter(_.coordinator.isAtWork) match {
        case Some(current) => environment.waiting.on(current.coordinator.deleteEntry(batch))
        case None => driver.deleteUnowned(root, batch, configuration, options)
      }
    case None => super.delete(new Path(new Path(root, "commits"), batch.toString))
  }

  /** The run that belongs to this file manager; on the thread that drives its query it is begun, if it has not. */
  private def owner(root: Path): Option[DrivenRun] = owned.orElse {
    owned = begin(root).filter(_.own())
    owned
  }

  private def begin(root: Path): Option[DrivenRun] =
    environment.driver.flatMap(_.beginIfDriven(root, configuration, options))

  /** The run that was begun when the query's offsets were listed: it belongs to whoever writes its first commit entry. */
  private def ownBegun(root: Path): Option[DrivenRun] = {
    owned = driven(root).filter(_.own())
    owned
  }

  /** The run on this checkpoint that the calling thread drives. */
  private def driven(root: Path): Option[DrivenRun] = environment.driver.flatMap(_.drivenHere(root))

  private def knowsNoOffsets(root: Path, batch: Long): Boolean =
    newestListed.exists(batch > _) && driven(root).nonEmpty

  private def runOf(store: CheckpointDirectory.Store): WorkedRun =
    environment.workers.of(store.root, run, configuration, options)

  /** Tasks are told their run by the time a store is loaded, which has its file manager to itself. */
  private def run: UUID = told.orElse {
    told = RunOfTask.of(configuration)
    told
  }.getOrElse(DstlCheckpointFileManager.NoRun)

  private def segmentOf(file: Path): Option[SegmentKey] = directory match {
    case CheckpointDirectory.Store(_, storeDirectory) =>
      SegmentKey.parse(storeDirectory, file.getName).filter(key => mayBeInLog(key.kind))
    case _ => None
  }

  /** Spark's own provider reads snapshots past its file manager. */
  private def mayBeInLog(kind: SegmentKind): Boolean =
    kind == SegmentKind.Changelog || kind == SegmentKind.Checksum || logsSnapshots

  private def batchOf(file: Path): Option[Long] = file.getName.toLongOption.filter(_ >= 0)
}

private[dstl] object DstlCheckpointFileManager {

  /** Without it, Spark's own provider writes a snapshot at every commit, and no changelog. */
  val ChangelogCheckpointing: String = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

  /** Set by a provider that finds snapshots in the log. */
  val LogsSnapshots: String = "sparkdstl.logsSnapshots"

  /** For reading outside of any run. */
  val NoRun: UUID = new UUID(0, 0)
}
