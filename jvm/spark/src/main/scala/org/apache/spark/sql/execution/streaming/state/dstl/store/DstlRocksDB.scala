package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.FoundSegment
import sparkdstl.log.worker.LocalStore

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.RocksDB.RocksDBSnapshot
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Waiting
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * The task attempt that left the local state which the current thread is about to change: known while a store is loaded, which is
 * when Spark opens its changelog.
 */
private[dstl] object BaseOfChanges {
  private val base = new ThreadLocal[Option[Long]]

  def get: Option[Long] = Option(base.get).flatten

  def during[T](attempt: Option[Long])(body: => T): T = {
    base.set(attempt)
    try body
    finally base.remove()
  }
}

/**
 * Spark's RocksDB, which remembers whose changes its local state holds: a state that was not committed is never built on, and
 * never becomes a snapshot that somebody could load.
 *
 * With checkpoint ids Spark does the same by itself: a version is loaded by its id, and snapshots are named by it.
 *
 * @param run            the log of the query's run
 * @param storeDirectory as the log names the store
 */
private[dstl] final class DstlRocksDB(
    dfsRootDir: String,
    conf: RocksDBConf,
    localRootDir: File,
    hadoopConf: Configuration,
    loggingId: String,
    useColumnFamilies: Boolean,
    enableStateStoreCheckpointIds: Boolean,
    partitionId: Int,
    eventForwarder: Option[RocksDBEventForwarder],
    uniqueId: Option[String],
    run: () => Option[WorkedRun],
    storeDirectory: Option[String]
) extends RocksDB(
      dfsRootDir,
      conf,
      localRootDir,
      hadoopConf,
      loggingId,
      useColumnFamilies,
      enableStateStoreCheckpointIds,
      partitionId,
      eventForwarder,
      uniqueId
    ) with LocalStore {

  // Guarded by attempts: the attempts whose commits led to the local versions, and those that are known not to count.
  private val attempts = mutable.LinkedHashMap.empty[Long, Long]
  private val dropped = mutable.HashSet.empty[Long]
  // By the snapshot's directory: two attempts may leave one each of the same version.
  private val makers = mutable.HashMap.empty[String, Long]
  private var committing: Option[Long] = None
  private var postponed: Option[RocksDBSnapshot] = None

  register()

  override def drop(attempt: Long): Unit = attempts.synchronized {
    if (attempts.valuesIterator.contains(attempt)) dropped += attempt: Unit
  }

  override def load(version: Long, stateStoreCkptId: Option[String], readOnly: Boolean, loadEmpty: Boolean): RocksDB = {
    val base = attempts.synchronized(attempts.get(version).filter(_ => loadedVersion == version && !loadEmpty))
    if (base.exists(attempt => attempts.synchronized(dropped(attempt)))) {
      logInfo(s"Version $version was left by task attempt ${base.get}, which does not count: it is loaded again")
      loadedVersion = -1L
      loadedStateStoreCkptId = None
    }
    val kept = if (loadedVersion == version) base else None
    if (kept.isEmpty) attempts.synchronized(attempts.filterInPlace((of, _) => of < version)): Unit
    LoadErrors.inFront(BaseOfChanges.during(kept)(super.load(version, stateStoreCkptId, readOnly, loadEmpty)))
  }

  override def commit(forceSnapshot: Boolean): (Long, StateStoreCheckpointInfo) = {
    val attempt = Option(TaskContext.get()).map(_.taskAttemptId())
    attempts.synchronized { committing = attempt }
    try {
      val committed = super.commit(forceSnapshot)
      attempt.foreach(remember(committed._1, _))
      committed
    } finally attempt.foreach(noteSnapshots)
  }

  private def remember(version: Long, attempt: Long): Unit = attempts.synchronized {
    attempts.put(version, attempt)
    if (attempts.size > DstlRocksDB.RememberedAttempts) {
      attempts.remove(attempts.head._1)
      dropped.filterInPlace(attempt => attempts.valuesIterator.contains(attempt)): Unit
    }
  }

  /** A snapshot that was not there before the attempt's commit is the attempt's. */
  private def noteSnapshots(attempt: Long): Unit = {
    val there =
      Option(localRootDir.list()).fold(Set.empty[String])(_.filter(_.startsWith(DstlRocksDB.SnapshotPrefix)).toSet)
    attempts.synchronized {
      makers.filterInPlace((directory, _) => there(directory))
      there.foreach(directory => makers.getOrElseUpdate(directory, attempt))
      committing = None
    }
  }

  override def doMaintenance(): Unit = {
    val waiting = attempts.synchronized {
      val waiting = postponed
      postponed = None
      waiting
    }
    waiting.foreach(uploadSnapshot)
    super.doMaintenance()
  }

  /** A snapshot is uploaded once the version is committed, by the attempt whose state it is; until then it waits. */
  override private[sql] def uploadSnapshot(snapshot: RocksDBSnapshot): Unit = {
    val attempt = attempts.synchronized(makers.get(snapshot.checkpointDir.getName).orElse(committing))
    val isPartOfCommit = TaskContext.get() != null
    if (isPartOfCommit || enableStateStoreCheckpointIds || attempt.isEmpty) super.uploadSnapshot(snapshot)
    else committedBy(snapshot.version) match {
      case CommittedBy.PlainFile => super.uploadSnapshot(snapshot)
      case CommittedBy.Attempt(winner) if attempt.contains(winner) => super.uploadSnapshot(snapshot)
      case CommittedBy.Attempt(winner) =>
        logInfo(s"The snapshot of version ${snapshot.version} by task attempt ${attempt.get} is discarded: attempt " +
          s"$winner was committed")
        attempt.foreach(drop)
        snapshot.close()
      case CommittedBy.Nobody => postpone(snapshot)
    }
  }

  override def close(): Unit = {
    unregister()
    attempts.synchronized(postponed).foreach(_.close())
    super.close()
  }

  override protected def createFileManager(
      dfsRootDir: String,
      localTempDir: File,
      hadoopConf: Configuration,
      codecName: String,
      loggingId: String,
      storeConf: StateStoreConf
  ): RocksDBFileManager = new DstlRocksDBFileManager(
    dfsRootDir,
    localTempDir,
    hadoopConf,
    codecName,
    loggingId,
    storeConf,
    checksums = conf.fileChecksumEnabled
  )

  private def postpone(snapshot: RocksDBSnapshot): Unit = {
    val replaced = attempts.synchronized {
      val replaced = postponed
      postponed = Some(snapshot)
      replaced
    }
    replaced.foreach(_.close())
  }

  private def committedBy(version: Long): CommittedBy =
    (for {
      worked <- run()
      if worked.worker.exists(_.isCoordinated)
      store <- storeDirectory
      key <- SegmentKey.parse(store, s"$version${SegmentKind.Changelog.suffix}")
    } yield
      // Not from the cache: that an entry is missing may have changed.
      if (!Waiting.on(worked.reader.isCommitted(key.batch))) CommittedBy.Nobody
      else Waiting.on(worked.reader.find(key)) match {
        case Some(FoundSegment(_, segment)) => CommittedBy.Attempt(segment.attempt)
        case None => CommittedBy.PlainFile
      }).getOrElse(CommittedBy.PlainFile)

  private def register(): Unit =
    for (worked <- run(); worker <- worked.worker; store <- storeDirectory) worker.register(store, this)

  private def unregister(): Unit =
    for (worked <- run(); worker <- worked.worker; store <- storeDirectory) worker.unregister(store, this)
}

private object DstlRocksDB {

  /** More than any snapshot waits for. */
  private val RememberedAttempts = 1000

  /** How `RocksDB.createSnapshot` names the directories that it makes. */
  private val SnapshotPrefix = "checkpoint-"
}

/** Whose changes led to a version that may be committed. */
private sealed trait CommittedBy

private object CommittedBy {
  case object Nobody extends CommittedBy
  case object PlainFile extends CommittedBy
  final case class Attempt(id: Long) extends CommittedBy
}
