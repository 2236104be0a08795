// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import sparkdstl.log.format.{EncodedEntry, SegmentEntry, SegmentKind}
import sparkdstl.log.transport.BarrierReport

private[coordinator] object BarrierReports {

  /** The report of the barrier of `batch`, without the segments of snapshots of earlier versions. */
  def of(batch: Long, entry: EncodedEntry, waitMillis: Long, writeMillis: Long, logBytes: Long): BarrierReport = {
    val segments = entry.index.entries.filter(_.key.batch == batch)
    val (outside, inside) = segments.flatMap(_.parts).partition(_.file.nonEmpty)
    val ofSnapshots = entry.index.entries.filter(_.key.kind.isOfSnapshot)
    BarrierReport(
      batch,
      waitMillis,
      writeMillis,
      entry.payload.length,
      inside.iterator.map(_.length.toLong).sum,
      outside.iterator.map(_.length.toLong).sum,
      logBytes,
      newIn(ofSnapshots).flatMap(_.parts).map(_.length.toLong).sum,
      segments.size,
      ofSnapshots.count(_.key.kind == SegmentKind.Snapshot)
    )
  }

  /** The segments of new snapshots, without files of earlier snapshots, which have a lower version. */
  private def newIn(ofSnapshots: Seq[SegmentEntry]): Iterator[SegmentEntry] = {
    val zips = ofSnapshots.iterator.map(_.key).filter(_.kind == SegmentKind.Snapshot)
      .map(zip => zip.storeDirectory -> zip.version).toSet
    ofSnapshots.iterator.filter(of => zips(of.key.storeDirectory -> of.key.version))
  }
}
