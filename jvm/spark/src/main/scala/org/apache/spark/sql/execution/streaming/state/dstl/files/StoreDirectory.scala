// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.{FoundSegment, SegmentInputStream, StoreLoad}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{CheckpointFiles, EntryPoints}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.{
  Bypass,
  CurrentBatch,
  EndingStream,
  TaskLog,
  WorkedRun
}

/**
 * `<root>/state/<operator>/<partition>[/<store>]`: changelogs, their checksums and, with our own provider, snapshots are segments
 * in the log, and are created, opened, listed and deleted like files. What the log does not hold is a plain file.
 */
private[dstl] final class StoreDirectory(store: LoggedStore, files: CheckpointFiles) extends PlainDirectory(files) {
  import store.checkpoint.{configuration, options}

  private val logsSnapshots = configuration.getBoolean(EntryPoints.LogsSnapshots, false)

  // The files in the newest listing of changelogs: only these are deleted as files.
  @volatile private var listed: Option[Set[String]] = None

  override def create(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    segmentOf(file) match {
      case Some(key) if isForLog(key) => segment(key).getOrElse(super.create(file, overwrite))
      // Spark's checksum of a snapshot: the log has its own.
      case None if file.getName.endsWith(".crc") && isInLog(file.getName.stripSuffix(".crc")) =>
        EndingStream.discarding()
      case _ =>
        Bypass.reasonFor(file.getName, configuration).foreach(why => store.run.worker.foreach(_.bypass(why)))
        // A task's own run commits its snapshot.
        if (CurrentBatch.get.isEmpty) plainSnapshotOf(file.getName).foreach(store.refuseUndone)
        super.create(file, overwrite)
    }

  private def segment(key: SegmentKey): Option[CancellableFSDataOutputStream] =
    if (!options.logsChanges) None
    else {
      val load = StoreLoad.current
      val segment = TaskLog.begin(store.run, key, load.flatMap(_.base), bytes => load.foreach(_.written += bytes))
      // Readers of the state write nothing that a batch needs.
      if (segment.isEmpty && CurrentBatch.get.nonEmpty) Bypass.warnOnce(store.checkpoint.root)
      segment
    }

  override def open(file: Path): FSDataInputStream = LoadErrors.inFront(Some(store.run)) {
    val load = StoreLoad.current
    load.flatMap(_.open(file)).orElse(segmentOf(file).flatMap(logged(_, load))).getOrElse(openPlain(file))
  }

  private def openPlain(file: Path): FSDataInputStream =
    try super.open(file)
    catch {
      case missing: FileNotFoundException =>
        val from = store.run
        throw segmentOf(file).filter(_.kind == SegmentKind.Changelog)
          .fold[Throwable](missing)(key => from.waiting.on(from.reader.explainMissing(key)))
    }

  /** The segment, if it is in the log; the committed ones after a changelog are fetched ahead. */
  private def logged(key: SegmentKey, load: Option[StoreLoad]): Option[FSDataInputStream] = {
    val run = store.run
    val found =
      if (!isChangelog(key)) store.snapshot(key)
      else {
        CurrentBatch.get.foreach { batch =>
          run.reader.prefetch((key.batch + 1) until math.min(key.batch + 1 + options.downloadThreads, batch))
        }
        run.waiting.on(run.reader.open(key))
      }
    found.map(stream(run, _, load))
  }

  private def stream(run: WorkedRun, found: FoundSegment, load: Option[StoreLoad]): FSDataInputStream = {
    val key = found.segment.key
    val metrics = run.resources.replayMetrics
    metrics.opened()
    load.foreach { of =>
      of.segments += 1
      if (key.kind == SegmentKind.Changelog) of.progress.foreach(_.reached(key.version))
    }
    new FSDataInputStream(new SegmentInputStream(
      found.segment.parts.map(_.length),
      index => {
        val bytes = LoadErrors.inFront(Some(run))(run.waiting.on(run.reader.part(found, index)))
        load.foreach(_.bytes += bytes.length)
        metrics.read(bytes.length.toLong)
        bytes
      }
    ))
  }

  override def exists(file: Path): Boolean = segmentOf(file) match {
    case Some(key) if isChangelog(key) =>
      !CurrentBatch.isAt(key.batch) && (store.hasSegment(key) || super.exists(file))
    case Some(key) => store.snapshot(key).nonEmpty || super.exists(file)
    // The first batch creates the directory, where storage has directories; a listing does not need it.
    case None => files.isOwn(file) && CurrentBatch.get.exists(_ > 0) || super.exists(file)
  }

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] =
    if (!files.isOwn(directory)) super.list(directory, filter)
    else {
      val found =
        try super.list(directory, filter)
        catch { case _: FileNotFoundException => Array.empty[FileStatus] }
      val wanted = SegmentKind.all.toSet.filter { kind =>
        kind != SegmentKind.SnapshotFile && mayBeInLog(kind) && filter.accept(new Path(directory, s"1${kind.suffix}"))
      }
      if (wanted(SegmentKind.Changelog)) listed = Some(found.iterator.map(_.getPath.getName).toSet)
      val logged = store.files(directory, wanted).filter(status => filter.accept(status.getPath))
      // A plain file with the name of a segment was left by an attempt that was not committed.
      val inLog = logged.iterator.map(_.getPath.getName).toSet
      found.filterNot(status => inLog(status.getPath.getName)) ++ logged
    }

  override def delete(file: Path): Unit = {
    val key = segmentOf(file)
    key.foreach(of => store.run.worker.foreach(_.release(of.storeDirectory, of.version + 1)))
    if (key.isEmpty || listed.forall(_(file.getName))) super.delete(file)
  }

  private def segmentOf(file: Path): Option[SegmentKey] = segmentOf(file.getName)

  private def segmentOf(name: String): Option[SegmentKey] =
    SegmentKey.parse(store.directory, name).filter(key => mayBeInLog(key.kind))

  /** A snapshot without a checkpoint id, which later runs take for that of their own version. */
  private def plainSnapshotOf(name: String): Option[SegmentKey] =
    SegmentKey.parse(store.directory, name).filter(key => key.kind == SegmentKind.Snapshot && key.checkpointId.isEmpty)

  /** Spark's own provider does not read snapshots through its file manager. */
  private def mayBeInLog(kind: SegmentKind): Boolean =
    kind == SegmentKind.Changelog || kind == SegmentKind.Checksum || logsSnapshots

  private def isChangelog(key: SegmentKey): Boolean =
    key.kind == SegmentKind.Changelog || key.kind == SegmentKind.Checksum

  /** A snapshot that is part of a commit goes to the log: one that is not committed must not be found. */
  private def isForLog(key: SegmentKey): Boolean = isChangelog(key) || CurrentBatch.isAt(key.batch)

  private def isInLog(name: String): Boolean = segmentOf(name).exists(isForLog) && store.isLogged
}
