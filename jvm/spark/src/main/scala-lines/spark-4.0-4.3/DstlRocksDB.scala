// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File
import java.nio.file.Files
import java.util
import java.util.UUID

import scala.util.control.NonFatal

import org.apache.commons.lang3.reflect.FieldUtils
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.read.StoreLoad
import sparkdstl.log.worker.SnapshotSchedule

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.ProcessResources
import org.apache.spark.sql.execution.streaming.state.dstl.worker.TaskLog

/**
 * Spark's RocksDB, which records the task attempt that made its local state: state that was not committed is loaded again before
 * further changes, and never becomes a snapshot.
 *
 * A snapshot is due when its interval is over, or when replay would cost more than loading it. The task only flushes and links
 * files, which [[Materialization]] then uploads. A snapshot without which the version could not be rebuilt (column families were
 * added or removed) is part of the commit. While the log is off Spark's own rules hold.
 *
 * @param made  the arguments with which Spark creates it
 * @param store in the log; None if its directory is not in a checkpoint
 */
private[dstl] final class DstlRocksDB(
    made: RocksDBArguments,
    options: LogOptions,
    override protected val resources: ProcessResources,
    override protected val store: Option[LoggedStore]
) extends RocksDBShims(
      // This class decides when to make a snapshot.
      made.copy(conf = made.conf.copy(minDeltasForSnapshot = Int.MaxValue))
    ) with TrackedState with LoadShims with ChangeShims with ColumnFamilyShims {
  private[store] type Bytes = Array[Byte]
  private[store] type Committed = (Long, StateStoreCheckpointInfo)

  private val schedule = new SnapshotSchedule(options, made.conf.minDeltasForSnapshot, resources.runtime)
  private val materialization =
    new Materialization(made.loggingId, options, resources, files, confirmUploaded)

  // Guarded by Spark's lock of the store; at the end of a commit, when Spark 4.0 has released that, by the schedule's.
  private var changing = new Changing(new StoreLoad(None, None), loadsEmpty = false)
  private var snapshotVersion = 0L
  private var writes = 0L

  register()

  /** Loads a version, of `id` in checkpoint format 2; `load` is what Spark does. */
  private[store] def loading(version: Long, id: Option[String], loadEmpty: Boolean)(load: () => RocksDB): RocksDB = {
    def isThere = loadedVersion == version && id.forall(loadedStateStoreCkptId.contains) && !loadEmpty
    materialization.refuseIfFailed()
    lockForLoad()
    loadTracked(made.loggingId, version, isThere)(forgetLoaded()) { current =>
      schedule.synchronized { changing = new Changing(current, loadEmpty) }
      if (!current.isLocal) materialization.abandon()
      val loaded = load()
      if (!current.isLocal) noteLoaded(version, current.bytes)
      loaded
    }
  }

  private def forgetLoaded(): Unit = {
    loadedVersion = -1L
    loadedStateStoreCkptId = None
  }

  private def noteLoaded(version: Long, replayedBytes: Long): Unit = {
    val from = files.loadedSnapshot
    snapshotVersion = from.version
    writes = 0
    val worker = store.flatMap(_.worker)
    val runsSince = worker.flatMap(of => resources.waiting.on(of.epoch())).fold(0L)(_ - from.epoch)
    val loads = (for (of <- store; to <- worker) yield to.loaded(of.directory)).getOrElse(1)
    schedule.loaded(from.bytes, version - from.version, replayedBytes, runsSince, loads)
    // Column families that the load creates do not count.
    changing.columnFamiliesChanged = false
  }

  /** Called before Spark creates a column family, unless it exists; a snapshot of the version must show it. */
  private[store] def beforeColumnFamily(name: String): Unit =
    changing.columnFamiliesChanged ||= !checkColFamilyExists(name)

  override def removeColFamilyIfExists(colFamilyName: String): Boolean = {
    val removed = super.removeColFamilyIfExists(colFamilyName)
    changing.columnFamiliesChanged ||= removed
    removed
  }

  /**
   * Commits; `commit` is what Spark does, with a snapshot if its argument or Spark requires one. `isAsked` is whether Spark asks
   * for one, which it does with each batch until one is uploaded.
   */
  private[store] def committing(isAsked: Boolean)(commit: Boolean => Committed): Committed = {
    // Spark 4.0 releases the store within the commit; another attempt can load and change it afterwards.
    val own = changing
    own.isOverdue = materializes && schedule.isOverdue
    // One at a time: a second snapshot would upload again what the first has not uploaded yet.
    val isDue =
      if (materializes) (isAsked || schedule.isDue || materialization.isWantedAgain) && !materialization.isBusy
      else isAsked || loadedVersion + 1 - snapshotVersion >= made.conf.minDeltasForSnapshot
    val local = materialization.local
    try {
      val attempt = remember(loadedVersion + 1)
      own.committer = Some(Thread.currentThread())
      val committed =
        try commit(isDue || own.isOverdue)
        finally own.committer = None
      for (of <- store; worker <- of.worker if of.isLogged; snapshot <- local.carried)
        TaskLog.carryFor(worker, of.directory, snapshot)
      val made = own.taken
      own.taken = None
      schedule.synchronized {
        if (changing eq own) {
          schedule.committed(own.load.written, hasChanged)
          made.foreach(noteTaken)
        }
      }
      made.foreach(keep(_, attempt, local))
      committed
    } finally own.taken.foreach(_.close())
  }

  /** Whether the version that was just committed changed anything. */
  private def hasChanged: Boolean = {
    val before = writes
    writes = metricsOpt.flatMap(_.nativeOpsHistograms.get("put")).fold(0L)(_.count)
    // The count restarts at each load if Spark is configured so.
    writes != before || conf.resetStatsOnLoad && writes > 0
  }

  /** Passes the snapshot of a version that a task has committed to the log, or to Spark's maintenance. */
  private def keep(snapshot: RocksDBSnapshot, attempt: Option[Long], changed: Materialization.LocalState): Unit =
    store match {
      case Some(of) if of.isLogged && attempt.nonEmpty =>
        // The commit does not need the snapshot.
        try materialization.begin(movedAway(snapshot), of, changed)
        catch {
          case NonFatal(error) =>
            logWarning(s"Version ${snapshot.version} gets no snapshot; the log is kept", error)
            resources.materializations.failed()
            snapshot.close()
        }
      case _ => DstlRocksDB.uploads.get(this).asInstanceOf[util.Queue[RocksDBSnapshot]].add(snapshot): Unit
    }

  private def noteTaken(snapshot: RocksDBSnapshot): Unit = {
    snapshotVersion = snapshot.version
    schedule.taken(snapshot.fileMapping.valuesIterator.map(_.immutableFile.sizeBytes).sum)
  }

  /** Moves the snapshot out of the store's directory, which is deleted when the store is unloaded: some are after each batch. */
  private def movedAway(snapshot: RocksDBSnapshot): RocksDBSnapshot = {
    val directory = new File(made.localRootDir.getParentFile, s"dstl-snapshot-${UUID.randomUUID()}")
    Files.move(snapshot.checkpointDir.toPath, directory.toPath): Unit
    snapshot.copy(checkpointDir = directory)
  }

  /** Called by Spark in a task's commit if a snapshot is forced, and in its maintenance. */
  override private[sql] def uploadSnapshot(snapshot: RocksDBSnapshot): Unit =
    if (!changing.committer.contains(Thread.currentThread())) super.uploadSnapshot(snapshot)
    else if (isPartOfCommit) {
      super.uploadSnapshot(snapshot)
      noteTaken(snapshot)
    } else changing.taken = Some(snapshot)

  /** Whether the version cannot be rebuilt without the snapshot, or the snapshot may not wait for a later seal. */
  private def isPartOfCommit: Boolean = changing.columnFamiliesChanged || changing.loadsEmpty || changing.isOverdue

  /** Marks the snapshot's files as uploaded in Spark's database: a later snapshot can name them again. */
  private def confirmUploaded(snapshot: RocksDBSnapshot): Unit =
    files.alreadySaved(snapshot)(super.uploadSnapshot(snapshot))

  override def close(): Unit =
    try {
      unregister()
      materialization.close()
    } finally super.close()

  /** Makes the manager of the store's files. Called by the constructor. */
  private[store] def managerOfFiles(localTempDir: File): RocksDBFileManager = {
    val files = new SnapshotFiles(new Path(made.dfsRootDir), made.hadoopConf, options, resources, store)
    new DstlRocksDBFileManager(made, localTempDir, options, files, resources, store)
  }

  private def files: DstlRocksDBFileManager = fileManager.asInstanceOf[DstlRocksDBFileManager]

  private def materializes: Boolean = store.exists(_.isLogged)
}

private object DstlRocksDB {

  // The snapshots that Spark's maintenance uploads; Spark has no method that adds one.
  private val uploads = FieldUtils.getDeclaredField(classOf[RocksDB], "snapshotsToUploadQueue", true)
}

/**
 * What the commit of the changes after a load needs to know.
 *
 * @param loadsEmpty whether Spark has loaded an empty state in place of the version
 */
private final class Changing(val load: StoreLoad, val loadsEmpty: Boolean) {
  var columnFamiliesChanged = false

  /** The thread that commits. Spark's maintenance runs beside it, or on a task's thread after its commit. */
  @volatile var committer = Option.empty[Thread]

  /** Whether the commit includes its snapshot because the snapshot is overdue. */
  var isOverdue = false

  /** The snapshot of the commit, which does not include it. */
  var taken: Option[RocksDBSnapshot] = None
}
