package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.{FoundSegment, SegmentInputStream}
import sparkdstl.log.transport.FromDriver

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
import org.apache.spark.sql.execution.streaming.state.dstl.store.LoadErrors
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/** Segments as listings of a store's directory show them. */
private[dstl] object LoggedFiles {

  /** Which kinds of segments a filter lets through: looking for others is not needed. */
  def wanted(directory: Path, filter: PathFilter): Set[SegmentKind] =
    SegmentKind.all.filter(kind => filter.accept(new Path(directory, s"1${kind.suffix}"))).toSet -
      SegmentKind.SnapshotFile

  /**
   * The store's segments of these kinds in the log. Where the driver coordinates the run it knows the versions, but not the
   * checkpoint ids, which nobody who lists changelogs needs: Spark's maintenance goes by versions.
   */
  def of(run: WorkedRun, storeDirectory: String, directory: Path, kinds: Set[SegmentKind]): Seq[FileStatus] =
    if (kinds.isEmpty) Nil
    else run.worker.flatMap(worker => run.waiting.on(worker.versions(storeDirectory))) match {
      case Some(FromDriver.Versions(changelogs, snapshots, _, _)) =>
        val ofChangelogs = changelogs.filter(_ => kinds(SegmentKind.Changelog))
          .map(version => s"$version${SegmentKind.Changelog.suffix}")
        val ofSnapshots = snapshots.filter(_ => kinds(SegmentKind.Snapshot))
          .flatMap(place => LoggedSnapshots.key(storeDirectory, place.version, place.id)).map(_.fileName)
        (ofChangelogs ++ ofSnapshots).map(name => status(new Path(directory, name), 0))
      case None =>
        val others = kinds - SegmentKind.Snapshot
        val segments =
          if (others.isEmpty) Vector.empty else run.waiting.on(run.reader.allSegmentsOf(storeDirectory, others))
        val snapshots = if (kinds(SegmentKind.Snapshot)) run.waiting.on(run.reader.snapshots()).held else Vector.empty
        segments.map(segment => status(new Path(directory, segment.key.fileName), segment.length)) ++
          snapshots.map(_.key).filter(_.storeDirectory == storeDirectory)
            .map(key => status(new Path(directory, key.fileName), 0))
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
  def open(run: WorkedRun, key: SegmentKey, ahead: Int): Option[FSDataInputStream] = {
    CurrentBatch.get.foreach { batch =>
      run.reader.prefetch((key.batch + 1) until math.min(key.batch + 1 + ahead, batch))
    }
    run.waiting.on(run.reader.open(key)).map(stream(run, _))
  }

  /** A segment that was found. */
  def stream(run: WorkedRun, found: FoundSegment): FSDataInputStream = {
    val counters = ReplayCounters.current
    val metrics = run.environment.replayMetrics
    metrics.opened()
    if (found.segment.key.kind == SegmentKind.Changelog) CurrentLoad.get.foreach(_.reached(found.segment.key.version))
    counters.segments += 1
    new FSDataInputStream(new SegmentInputStream(
      found.segment.parts.map(_.length),
      index => {
        val bytes = LoadErrors.inFront(run.waiting.on(run.reader.part(found, index)))
        counters.bytes += bytes.length
        metrics.read(bytes.length.toLong)
        bytes
      }
    ))
  }
}

/** What the current thread's task has replayed. */
private[dstl] final class ReplayCounters {
  var segments = 0L
  var bytes = 0L

  /** Change records, whether their changelogs were in the log or plain files. */
  var records = 0L

  def reset(): Unit = {
    segments = 0
    bytes = 0
    records = 0
  }
}

private[dstl] object ReplayCounters {
  private val counters = ThreadLocal.withInitial[ReplayCounters](() => new ReplayCounters)

  def current: ReplayCounters = counters.get()
}
