// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.util.UUID

import org.apache.hadoop.fs.{FileStatus, Path}

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.FoundSegment
import sparkdstl.log.transport.{FromDriver, SnapshotPlace}
import sparkdstl.log.worker.RunWorker

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.{Checkpoint, PartitionDirectories}
import org.apache.spark.sql.execution.streaming.state.dstl.transport.QueryShims
import org.apache.spark.sql.execution.streaming.state.dstl.worker.{CurrentBatch, WorkedRun, WorkerSide}

/**
 * A store in the log, for one run. If a driver coordinates the run, the driver answers which versions of the store the log has;
 * otherwise commit entries are read.
 *
 * @param directory the store's name in the log
 */
private[dstl] final class LoggedStore(val checkpoint: Checkpoint, val directory: String, workers: WorkerSide) {

  // Set by the time a task loads the store.
  @volatile private var runId = QueryShims.runIn(checkpoint.configuration)

  def run: WorkedRun = {
    if (runId.isEmpty) runId = QueryShims.runIn(checkpoint.configuration)
    workers.of(checkpoint, runId.getOrElse(LoggedStore.NoRun))
  }

  def worker: Option[RunWorker] = run.worker

  /** Whether changes of the store go to the log, once the driver has answered the run's first message. */
  def isLogged: Boolean = checkpoint.options.logsChanges && worker.exists(_.isCoordinated)

  /** The versions of the store in the log; without a coordinated run its snapshots only, and no lowest version. */
  def versions: FromDriver.Versions = {
    val from = run
    versions(from).getOrElse {
      val all = from.waiting.on(from.reader.snapshots())
      val own = all.held.filter(_.key.storeDirectory == directory).sortBy(_.key.version)
      FromDriver.Versions(Vector.empty, own.map(SnapshotPlace.of), all.plainUpTo, 0)
    }
  }

  /** The zip of a snapshot, if a commit entry holds it. */
  def snapshot(key: SegmentKey): Option[FoundSegment] =
    versions.snapshots.find(place => place.version == key.version && place.id == key.checkpointId)
      .flatMap(place => snapshot(key, place.batch))

  /** The zip of a snapshot, if the entry of `batch` holds it. */
  def snapshot(key: SegmentKey, batch: Long): Option[FoundSegment] = {
    val from = run
    from.waiting.on(from.reader.held(key, batch))
  }

  def snapshotKey(version: Long, id: Option[String]): Option[SegmentKey] =
    SegmentKey.parse(directory, s"$version${id.fold("")("_" + _)}${SegmentKind.Snapshot.suffix}")

  /**
   * Fails if the run has ended, and its commit of the snapshot's version is gone: the query was rolled back, or its checkpoint
   * deleted. Spark's maintenance writes plain snapshots for some time after the end of a query, and a later run would load them
   * as its own versions.
   */
  def refuseUndone(snapshot: SegmentKey): Unit = {
    val from = run
    val hasEnded = from.worker.exists(_.isCoordinated) && versions(from).isEmpty
    if (hasEnded && !from.waiting.on(from.reader.isStillCommitted(snapshot.batch)))
      throw new IllegalStateException(
        s"${snapshot.relativePath} of ${checkpoint.root} is not written: the run ${from.id.run} has ended, and the " +
          s"entry of batch ${snapshot.batch} is not its own any more. The query was rolled back, or its checkpoint was deleted"
      )
  }

  def hasSegment(key: SegmentKey): Boolean = {
    val from = run
    from.waiting.on(from.reader.find(key)).nonEmpty
  }

  /** A whole segment, verified. */
  def content(found: FoundSegment): Array[Byte] = {
    val from = run
    found.segment.parts.indices.map(index => from.waiting.on(from.reader.part(found, index))).toArray.flatten
  }

  /**
   * The store's segments of these kinds as files of `directory`, for Spark's maintenance, which needs versions and no checkpoint
   * ids. A snapshot is listed once no rollback can remove its entry, because Spark deletes the versions before it.
   */
  def files(directory: Path, kinds: Set[SegmentKind]): Seq[FileStatus] = {
    def status(name: String, length: Long) = new FileStatus(length, false, 1, 0, 0L, new Path(directory, name))
    val from = run
    if (kinds.isEmpty) Nil
    else versions(from) match {
      case Some(FromDriver.Versions(changelogs, snapshots, _, lowest)) =>
        val ofChangelogs =
          changelogs.filter(_ => kinds(SegmentKind.Changelog)).map(version =>
            s"$version${SegmentKind.Changelog.suffix}"
          )
        val ofSnapshots = snapshots.filter(place => kinds(SegmentKind.Snapshot) && place.version <= lowest)
          .flatMap(place => snapshotKey(place.version, place.id)).map(_.fileName)
        (ofChangelogs ++ ofSnapshots).map(status(_, 0))
      case None =>
        val others = kinds - SegmentKind.Snapshot
        if (others.isEmpty) Nil
        else from.waiting.on(from.reader.allSegmentsOf(this.directory, others))
          .map(segment => status(segment.key.fileName, segment.length))
    }
  }

  /**
   * Fails in a state reader's task of the first partition if a partition has no directory: the driver's session may lack the file
   * manager, which creates them.
   */
  def checkPartitions(): Unit = {
    val path = directory.split('/')
    if (path(1) == "0" && TaskContext.get() != null && CurrentBatch.get.isEmpty && !isOfQuery) {
      val from = run
      val directories = new PartitionDirectories(checkpoint, from.resources)
      val stores = from.reader.newestStores()
      from.waiting.on(stores.flatMap { all =>
        directories.check(all.filter(_.startsWith(s"${path(0)}/")))
      }(from.resources.runtime.executor))
    }
  }

  /** Whether a driver coordinates the run, which a state reader's has not. */
  private def isOfQuery: Boolean = {
    val from = run
    from.worker.exists(worker => from.waiting.on(worker.opened()).isInstanceOf[FromDriver.Opened])
  }

  private def versions(from: WorkedRun): Option[FromDriver.Versions] =
    from.worker.flatMap(worker => from.waiting.on(worker.versions(directory)))
}

private object LoggedStore {

  /** The run's id in reads outside of any run. */
  private val NoRun: UUID = new UUID(0, 0)
}
