package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.{LogLayout, SegmentKey, SegmentKind}
import sparkdstl.log.read.{SegmentInputStream, SegmentReader}

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Waiting
import org.apache.spark.sql.execution.streaming.state.dstl.store.LoadErrors
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/** Segments as listings of a store's directory show them. */
private[dstl] object LoggedFiles {

  /** Which kinds of segments a filter lets through: looking for others is not needed. */
  def wanted(directory: Path, filter: PathFilter): Set[SegmentKind] =
    SegmentKind.all.filter(kind => filter.accept(new Path(directory, s"1${kind.suffix}"))).toSet

  /**
   * The store's segments in the log, of these kinds at least if there are any. Where the driver coordinates the run it knows the versions, but not the
   * checkpoint ids, which nobody who lists changelogs needs: Spark's maintenance goes by versions.
   */
  def of(
      run: WorkedRun,
      store: CheckpointDirectory.Store,
      directory: Path,
      wanted: Set[SegmentKind],
      configuration: Configuration,
      options: LogOptions
  ): Seq[FileStatus] =
    if (wanted.isEmpty) Nil
    else run.worker match {
      case Some(worker) if worker.isCoordinated =>
        val versions = Waiting.on(worker.versions(store.storeDirectory))
        def named(of: Vector[Long], kind: SegmentKind): Seq[FileStatus] =
          of.map(version => status(new Path(directory, s"$version${kind.suffix}"), 0))
        named(versions.changelogs, SegmentKind.Changelog) ++ named(versions.snapshots, SegmentKind.Snapshot)
      case _ => fromStorage(run.reader, store, directory, wanted, configuration, options)
    }

  private def fromStorage(
      reader: SegmentReader,
      store: CheckpointDirectory.Store,
      directory: Path,
      wanted: Set[SegmentKind],
      configuration: Configuration,
      options: LogOptions
  ): Seq[FileStatus] = {
    val commits = new Path(store.root, "commits")
    val files = new CheckpointFiles(commits, configuration, options)
    val fileSystem = commits.getFileSystem(configuration)
    val entries =
      try files.list(commits)(fileSystem.listStatus(commits))
      catch { case _: java.io.FileNotFoundException => Array.empty[FileStatus] }
    val batches = entries.toVector.flatMap(entry => LogLayout.parseBatch(entry.getPath.getName)).sorted
    val onlySnapshots = wanted == Set[SegmentKind](SegmentKind.Snapshot)
    (if (onlySnapshots) Waiting.on(reader.withSnapshots(batches)) else batches).flatMap { batch =>
      Waiting.on(reader.segmentsOf(store.storeDirectory, batch)).map { segment =>
        status(new Path(directory, segment.key.fileName), segment.length)
      }
    }
  }

  private def status(file: Path, length: Long): FileStatus = new FileStatus(length, false, 1, 0, 0L, file)
}

/** Which batch the current task works at. */
private[dstl] object CurrentBatch {

  /** Whether the current task makes this batch: then nothing of it is committed. */
  def isAt(batch: Long): Boolean = get.contains(batch)

  def get: Option[Long] = Option(TaskContext.get())
    .flatMap(context => Option(context.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY))).flatMap(_.toLongOption)
}

/** Segments as streams. */
private[dstl] object ReplayedSegment {

  /** The segment, if it is in the log; those that follow are fetched meanwhile, as far as they are committed. */
  def open(reader: SegmentReader, key: SegmentKey, ahead: Int): Option[FSDataInputStream] = {
    CurrentBatch.get.foreach { batch =>
      reader.prefetch((key.batch + 1) until math.min(key.batch + 1 + ahead, batch))
    }
    Waiting.on(reader.open(key)).map { found =>
      val counters = ReplayCounters.current
      val metrics = DstlEnvironment.get.replayMetrics
      metrics.opened()
      counters.segments += 1
      new FSDataInputStream(new SegmentInputStream(
        found.segment.parts.map(_.length),
        index => {
          val bytes = LoadErrors.inFront(Waiting.on(reader.part(found, index)))
          counters.bytes += bytes.length
          metrics.read(bytes.length.toLong)
          bytes
        }
      ))
    }
  }
}

/** What the current thread's task has replayed. */
private[dstl] final class ReplayCounters {
  var segments = 0L
  var bytes = 0L

  def reset(): Unit = {
    segments = 0
    bytes = 0
  }
}

private[dstl] object ReplayCounters {
  private val counters = ThreadLocal.withInitial[ReplayCounters](() => new ReplayCounters)

  def current: ReplayCounters = counters.get()
}
