package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File
import java.nio.file.Files
import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.{HadoopOptions, LogOptions}
import sparkdstl.log.worker.SnapshotSchedule

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.files.{ReplayCounters, WrittenBytes}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * Spark's RocksDB, which remembers whose changes its local state holds: a state that was not committed is never built on, and
 * never becomes a snapshot that somebody could load.
 *
 * It makes snapshots when they are worth it, and not every so many versions: a task then only flushes and links files, and what
 * becomes of them is [[Materialization]]'s. Those without which a version could not be rebuilt (column families were added or
 * removed) are part of the commit. Where the log is off Spark's own rules hold.
 *
 * @param made           what Spark makes it with
 * @param run            the log of the query's run
 * @param storeDirectory as the log names the store
 */
private[dstl] final class DstlRocksDB(
    made: NewRocksDB,
    override protected val run: () => Option[WorkedRun],
    override protected val storeDirectory: Option[String]
) extends RocksDBOfLine(
      // When it is time for a snapshot is decided here.
      made.copy(conf = made.conf.copy(minDeltasForSnapshot = Int.MaxValue))
    ) with LoadedRocksDB with ChangedRocksDB with MaintainedRocksDB with TrackedState {

  private val options: LogOptions = HadoopOptions.parse(made.hadoopConf)
  private val schedule = new SnapshotSchedule(options, made.conf.minDeltasForSnapshot, DstlEnvironment.get.runtime)
  private val materialization =
    new Materialization(made.loggingId, options, DstlEnvironment.get, files, confirmUploaded, run)

  // Used by the task's thread alone.
  private var columnFamiliesChanged = false
  private var loadsEmpty = false
  private var snapshotVersion = 0L
  private var writes = 0L
  private var taken: Option[RocksDBSnapshot] = None

  // Guarded by attempts: the newest plain snapshot, until Spark's maintenance uploads it.
  private var plain: Option[(RocksDBSnapshot, Option[Long])] = None

  register()

  override def drop(attempt: Long): Unit = {
    super.drop(attempt)
    materialization.abandon(attempt)
  }

  override protected def loading(version: Long, loadEmpty: Boolean)(load: () => RocksDB): RocksDB = {
    materialization.refuseIfFailed()
    loadsEmpty = loadEmpty
    columnFamiliesChanged = false
    loadTracked(made.loggingId, version, loadedVersion == version && !loadEmpty)(forgetLoaded()) { isLocal =>
      val replayed = ReplayCounters.current.bytes
      val loaded = load()
      if (!isLocal) noteLoaded(version, ReplayCounters.current.bytes - replayed)
      loaded
    }
  }

  private def forgetLoaded(): Unit = {
    loadedVersion = -1L
    loadedStateStoreCkptId = None
  }

  private def noteLoaded(version: Long, replayedBytes: Long): Unit = {
    val (from, bytes) = files.loadedSnapshot
    snapshotVersion = from
    writes = 0
    schedule.loaded(bytes, version - from, replayedBytes)
    // What opening the database adds is no change.
    columnFamiliesChanged = false
  }

  override protected def changing(): Unit = replay.changing()

  override protected def beforeColumnFamily(name: String): Unit =
    columnFamiliesChanged ||= !checkColFamilyExists(name)

  override def removeColFamilyIfExists(colFamilyName: String): Boolean = {
    val removed = super.removeColFamilyIfExists(colFamilyName)
    columnFamiliesChanged ||= removed
    removed
  }

  override protected def committing(
      commit: Boolean => (Long, StateStoreCheckpointInfo)
  ): (Long, StateStoreCheckpointInfo) = {
    // One at a time: what the one under way has not uploaded yet the next would have to upload again.
    val isDue =
      if (materializes) schedule.isDue && !materialization.isBusy
      else loadedVersion + 1 - snapshotVersion >= made.conf.minDeltasForSnapshot
    val written = WrittenBytes.current
    try {
      val committed = commit(isDue)
      val attempt = remember(committed._1)
      schedule.committed(WrittenBytes.current - written, hasChanged)
      val made = taken
      taken = None
      made.foreach(keep(_, attempt))
      committed
    } finally {
      taken.foreach(_.close())
      taken = None
      columnFamiliesChanged = false
    }
  }

  /** Whether the version that was just committed changed anything. */
  private def hasChanged: Boolean = {
    val before = writes
    writes = metricsOpt.flatMap(_.nativeOpsHistograms.get("put")).fold(0L)(_.count)
    // The count begins anew with each load if Spark is configured so.
    writes != before || conf.resetStatsOnLoad && writes > 0
  }

  /** The snapshot was made of a version that a task has now committed, whether or not the batch will be. */
  private def keep(snapshot: RocksDBSnapshot, attempt: Option[Long]): Unit = {
    noteTaken(snapshot)
    (storeDirectory, attempt) match {
      case (Some(store), Some(by)) if materializes =>
        // The version is committed without it.
        try materialization.begin(movedAway(snapshot), store, by)
        catch {
          case NonFatal(error) =>
            logWarning(s"Version ${snapshot.version} gets no snapshot; the log is kept", error)
            DstlEnvironment.get.materializations.failed()
            snapshot.close()
        }
      case _ => keepPlain(snapshot, attempt)
    }
  }

  private def noteTaken(snapshot: RocksDBSnapshot): Unit = {
    snapshotVersion = snapshot.version
    schedule.taken(snapshot.fileMapping.valuesIterator.map(_.immutableFile.sizeBytes).sum)
  }

  /** Where it stays when the store is unloaded, as some are after each batch. */
  private def movedAway(snapshot: RocksDBSnapshot): RocksDBSnapshot = {
    val directory = new File(made.localRootDir.getParentFile, s"dstl-snapshot-${UUID.randomUUID()}")
    Files.move(snapshot.checkpointDir.toPath, directory.toPath): Unit
    snapshot.copy(checkpointDir = directory)
  }

  /** Spark calls it in a task's commit if a snapshot is forced. */
  override private[sql] def uploadSnapshot(snapshot: RocksDBSnapshot): Unit =
    if (isPartOfCommit) {
      super.uploadSnapshot(snapshot)
      noteTaken(snapshot)
    } else taken = Some(snapshot)

  /** Whether nothing but the snapshot leads to the version. */
  private def isPartOfCommit: Boolean = columnFamiliesChanged || loadsEmpty

  /** Its files are where others can find them, and a later snapshot may name them again. */
  private def confirmUploaded(snapshot: RocksDBSnapshot): Unit = files.alreadySaved(super.uploadSnapshot(snapshot))

  override protected def beforeUploads(): Unit = {
    val waiting = attempts.synchronized {
      val waiting = plain
      plain = None
      waiting
    }
    waiting.foreach { case (snapshot, attempt) => uploadPlain(snapshot, attempt) }
  }

  override def close(): Unit = {
    unregister()
    materialization.close()
    attempts.synchronized(plain).foreach(_._1.close())
    super.close()
  }

  override protected def managerOfFiles(localTempDir: File): RocksDBFileManager = {
    val root = new Path(made.dfsRootDir)
    val files = new SnapshotFiles(root.getFileSystem(made.hadoopConf), root, made.hadoopConf)
    new DstlRocksDBFileManager(made, localTempDir, files, run, storeDirectory)
  }

  private def files: DstlRocksDBFileManager = fileManager.asInstanceOf[DstlRocksDBFileManager]

  private def materializes: Boolean = options.materializeEnabled && WorkedRun.isLogged(run(), options)

  /** A plain snapshot is uploaded once the version is committed, by the attempt whose state it is; until then it waits. */
  private def uploadPlain(snapshot: RocksDBSnapshot, attempt: Option[Long]): Unit =
    // Of a store that is unloaded within its task, it is part of the commit as well.
    if (TaskContext.get() != null || made.enableStateStoreCheckpointIds || attempt.isEmpty)
      super.uploadSnapshot(snapshot)
    else CommittedBy.of(run(), storeDirectory, snapshot.version) match {
      case CommittedBy.PlainFile => super.uploadSnapshot(snapshot)
      case CommittedBy.Attempt(winner) if attempt.contains(winner) => super.uploadSnapshot(snapshot)
      case CommittedBy.Attempt(winner) =>
        logInfo(s"The snapshot of version ${snapshot.version} by task attempt ${attempt.get} is discarded: attempt " +
          s"$winner was committed")
        attempt.foreach(drop)
        snapshot.close()
      case CommittedBy.Nobody => keepPlain(snapshot, attempt)
    }

  /** Of several that wait the newest is enough. */
  private def keepPlain(snapshot: RocksDBSnapshot, attempt: Option[Long]): Unit = {
    val replaced = attempts.synchronized {
      val (newer, older) = plain match {
        case Some(other) if other._1.version > snapshot.version => (other, Some(snapshot))
        case other => ((snapshot, attempt), other.map(_._1))
      }
      plain = Some(newer)
      older
    }
    replaced.foreach(_.close())
  }
}
