package org.apache.spark.sql.execution.streaming.state.dstl.files

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.FoundSegment
import sparkdstl.log.transport.{FromDriver, SnapshotPlace}

import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * Where the snapshots of a store are.
 *
 * @param logged    those that commit entries hold, in ascending order of versions
 * @param plainUpTo above this version there are no plain files of it; 0 if there never were any
 * @param lowest    the lowest version that is retained; 0 if that is not known
 */
private[dstl] final case class StoreSnapshots(logged: Vector[SnapshotPlace], plainUpTo: Long, lowest: Long)

private[dstl] object LoggedSnapshots {

  /** The driver knows, where it coordinates the run; else the newest commit entry does. */
  def of(run: WorkedRun, storeDirectory: String): StoreSnapshots =
    run.worker.flatMap(worker => run.waiting.on(worker.versions(storeDirectory))) match {
      case Some(FromDriver.Versions(_, snapshots, plainUpTo, lowest)) => StoreSnapshots(snapshots, plainUpTo, lowest)
      case None =>
        val all = run.waiting.on(run.reader.snapshots())
        val places = all.held.filter(_.key.storeDirectory == storeDirectory).sortBy(_.key.version)
          .map(SnapshotPlace.of)
        StoreSnapshots(places, all.plainUpTo, 0)
    }

  /** The zip of a snapshot, if a commit entry holds it. */
  def find(run: WorkedRun, key: SegmentKey): Option[FoundSegment] =
    of(run, key.storeDirectory).logged.find(place => place.version == key.version && place.id == key.checkpointId)
      .flatMap(place => run.waiting.on(run.reader.held(key, place.batch)))

  def key(storeDirectory: String, version: Long, id: Option[String]): Option[SegmentKey] =
    SegmentKey.parse(storeDirectory, s"$version${id.fold("")("_" + _)}${SegmentKind.Snapshot.suffix}")

  /** All of a segment, verified. */
  def content(run: WorkedRun, found: FoundSegment): Array[Byte] =
    found.segment.parts.indices.map(index => run.waiting.on(run.reader.part(found, index))).toArray.flatten
}
