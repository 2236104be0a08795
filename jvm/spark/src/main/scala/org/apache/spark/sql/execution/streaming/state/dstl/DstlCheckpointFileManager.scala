package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.format.{SegmentKey, SegmentKind}

import org.apache.spark.SparkEnv
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/**
 * Puts the log below Spark's checkpoint files. Set it as `spark.sql.streaming.checkpointFileManagerClass`.
 *
 * Changelogs and their checksum siblings never become files: they are segments in the log, and reading, listing, probing
 * and deleting them works as if they were files. A commit entry is created only after the batch's segments are durable.
 * Everything else is a file of its own, published by one write that is retried and hedged. What is not in the log is
 * looked for as a plain file, so a checkpoint of stock Spark can be continued.
 *
 * @param path          the directory that this file manager is for
 * @param configuration with the session's SQL configurations, from which the log's options are taken
 */
class DstlCheckpointFileManager(path: Path, configuration: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, configuration) {

  SparkVersion.check()

  private val options = HadoopOptions.parse(configuration)
  private val directory = CheckpointDirectory.of(path, configuration)
  private lazy val changelogs =
    configuration.getBoolean(DstlCheckpointFileManager.ChangelogCheckpointing, false)
  private lazy val services = Services.of(options)
  private lazy val storage = Storages.of(path, configuration, options.copy(inMemory = false))

  // Whoever asks for commits on a driver may be about to run a query: tasks must find the endpoint from then on.
  if (directory.isInstanceOf[CheckpointDirectory.Commits]) registry: Unit

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    (directory, segmentOf(file), batchOf(file)) match {
      case (store: CheckpointDirectory.Store, Some(key), _) =>
        logOf(store).writer(key).fold(publishedFile(file, overwriteIfPossible))(ChangelogStream(_))
      case (store: CheckpointDirectory.Store, None, _) =>
        if (!changelogs && file.getName.endsWith(".zip")) logOf(store).warnOfSnapshots()
        publishedFile(file, overwriteIfPossible)
      case (CheckpointDirectory.Commits(_), _, Some(batch)) => commitEntry(file, batch)
      case _ => publishedFile(file, overwriteIfPossible)
    }

  override def open(file: Path): FSDataInputStream =
    inLog(file)((log, key) => log.read(key).map(new FSDataInputStream(_))).getOrElse(super.open(file))

  override def exists(file: Path): Boolean = {
    beginRun()
    inLog(file)((log, key) => Some(key).filter(log.contains)).nonEmpty ||
    services.reads.exists(file)(() => super.exists(file))
  }

  override def list(listed: Path, filter: PathFilter): Array[FileStatus] = {
    beginRun()
    val files = super.list(listed, filter)
    directory match {
      case store: CheckpointDirectory.Store if listed.getName == path.getName && wantsSegments(listed, filter) =>
        val names = files.iterator.map(_.getPath.getName).toSet
        files ++ logOf(store).list(store.storeDirectory).filterNot(segment => names(segment.fileName))
          .map(segment => status(new Path(listed, segment.fileName), segment)).filter(s => filter.accept(s.getPath))
      case _ => files
    }
  }

  override def delete(file: Path): Unit =
    if (inLog(file)((log, key) => Some(key).filter(log.release)).isEmpty) super.delete(file)

  /** The commit entry of a batch: closing it is the barrier. */
  private def commitEntry(entry: Path, batch: Long): CancellableFSDataOutputStream = {
    beginRun()
    val qualified = fs.makeQualified(entry)
    PublishedFileStream(
      content =>
        coordinator match {
          case Some(run) => run.commit(batch, qualified, content)
          case None =>
            // Not the thread of a query: a tool, or a defect that would lose what tasks have sealed.
            sealedUnder(entry).filter(_.hasSeals(batch)).foreach(_ => throw DstlErrors.unknownRun(batch))
            services.writes.create(storage, qualified, content, namesItsWriter = false)
        },
      () => throw new IllegalStateException(s"commit entry $entry is larger than ${PublishedFileStream.Limit} bytes")
    )
  }

  private def publishedFile(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    PublishedFileStream(
      content => {
        val qualified = fs.makeQualified(file)
        if (overwriteIfPossible) services.writes.replace(storage, qualified, content)
        else services.writes.create(storage, qualified, content, namesItsWriter = false)
      },
      () => super.createAtomic(file, overwriteIfPossible)
    )

  /** On the thread that drives a query, makes its run the current one on this checkpoint. */
  private def beginRun(): Unit = (directory, StreamThread.run) match {
    case (CheckpointDirectory.Commits(root), Some(run)) =>
      registry.foreach(_.begin(root, run, configuration, options))
    case _ =>
  }

  private def coordinator: Option[RunCoordinator] = (directory, StreamThread.run) match {
    case (CheckpointDirectory.Commits(root), Some(run)) => registry.flatMap(_.of(root.toString, run))
    case _ => None
  }

  private def sealedUnder(entry: Path): Option[RunCoordinator] =
    registry.flatMap(_.current(fs.makeQualified(entry).getParent.getParent.toString))

  private def registry: Option[RunRegistry] =
    Option(SparkEnv.get).filter(CoordinatorClient.isDriver).map(CoordinatorEndpoint.registryOf)

  private def inLog[T](file: Path)(use: (RunLog, SegmentKey) => Option[T]): Option[T] =
    (directory, segmentOf(file)) match {
      case (store: CheckpointDirectory.Store, Some(key)) => use(logOf(store), key)
      case _ => None
    }

  private def logOf(store: CheckpointDirectory.Store): RunLog = RunLogs.of(store.root, run, configuration, options)

  /** Tasks are told their run in the Hadoop configuration; it is there by the time a store is loaded. */
  private def run: UUID =
    Option(configuration.get(StreamExecution.RUN_ID_KEY)).fold(DstlCheckpointFileManager.NoRun)(UUID.fromString)

  private def segmentOf(file: Path): Option[SegmentKey] = directory match {
    case CheckpointDirectory.Store(_, storeDirectory) => SegmentKey.parse(storeDirectory, file.getName)
    case _ => None
  }

  private def batchOf(file: Path): Option[Long] = file.getName.toLongOption.filter(_ >= 0)

  /** Whether a filter lets changelogs through at all: asking the driver for them is not needed otherwise. */
  private def wantsSegments(listed: Path, filter: PathFilter): Boolean =
    SegmentKind.all.exists(kind => filter.accept(new Path(listed, s"1${kind.suffix}")))

  private def status(file: Path, segment: ListedSegment): FileStatus =
    new FileStatus(segment.length, false, 1, 0, segment.modifiedAtMs, file)
}

private[dstl] object DstlCheckpointFileManager {

  /** Without it, Spark's own provider writes a snapshot at every commit, and no changelog. */
  val ChangelogCheckpointing: String = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

  /** For reading outside of any run. */
  val NoRun: UUID = new UUID(0, 0)
}
