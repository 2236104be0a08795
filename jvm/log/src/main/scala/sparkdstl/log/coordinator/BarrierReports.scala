package sparkdstl.log.coordinator

import sparkdstl.log.format.EncodedEntry
import sparkdstl.log.transport.BarrierReport

private[coordinator] object BarrierReports {

  /** How the barrier of `batch` went, whose entry was written. Snapshots of earlier versions are none of the barrier's. */
  def of(batch: Long, entry: EncodedEntry, waitMillis: Long, writeMillis: Long): BarrierReport = {
    val segments = entry.index.entries.filter(_.key.batch == batch)
    val (outside, inside) = segments.flatMap(_.parts).partition(_.file.nonEmpty)
    BarrierReport(
      batch,
      waitMillis,
      writeMillis,
      entry.payload.length,
      inside.iterator.map(_.length.toLong).sum,
      outside.iterator.map(_.length.toLong).sum,
      segments.size
    )
  }
}
