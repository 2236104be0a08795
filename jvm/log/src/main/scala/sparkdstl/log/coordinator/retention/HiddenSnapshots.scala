// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.retention

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.SegmentKind
import sparkdstl.log.request.QueryStorage

/**
 * Plain snapshots of versions that no batch has made yet. A repartition that was interrupted leaves them, and our provider does
 * not look at them while the log holds the changes. Without the log they would count as snapshots of the batches that follow.
 */
object HiddenSnapshots {

  /** Deletes those above the version that batch `newest` has made, and returns them. */
  def delete(storage: QueryStorage, newest: Long): Future[Seq[Path]] = {
    implicit val executor: ExecutionContext = storage.runtime.executor
    // With an id a snapshot belongs to one attempt, whose batch names it.
    def isHidden(file: Path) =
      storage.location.plainSegment(new Path(file.getParent, file.getName.stripSuffix(".crc"))).exists(of =>
        of.kind == SegmentKind.Snapshot && of.checkpointId.isEmpty && of.batch > newest
      )
    for {
      there <- storage.stateFiles()
      // A checksum before its file, which is readable without it.
      found = there.filter(isHidden).sortBy(_.toString).reverse
      _ <- if (found.isEmpty) Future.unit else storage.delete(Nil, found)
    } yield found
  }
}
