// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import scala.concurrent.{ExecutionContext, Future}

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.request.QueryStorage
import sparkdstl.log.storage.StorageOperation.ListRecursively

import org.apache.spark.sql.execution.streaming.runtime.StreamingCheckpointConstants.DIR_NAME_STATE

/**
 * Plain snapshots of versions that no batch has made yet. A repartition that was interrupted leaves them, and our provider does
 * not look at them while the log holds the changes. Without the log they would count as snapshots of the batches that follow.
 */
private[driver] object HiddenSnapshots {

  /** Deletes those above the version that batch `newest` has made, and returns them. */
  def delete(storage: QueryStorage, newest: Long): Future[Seq[Path]] = {
    implicit val executor: ExecutionContext = storage.runtime.executor
    val state = new Path(storage.location.root, DIR_NAME_STATE)
    def directoryOf(file: Path) = file.getParent.toUri.getPath.stripPrefix(s"${state.toUri.getPath}/")
    // With an id a snapshot belongs to one attempt, whose batch names it.
    def isHidden(file: Path) = SegmentKey.parse(directoryOf(file), file.getName.stripSuffix(".crc")).exists(of =>
      of.kind == SegmentKind.Snapshot && of.checkpointId.isEmpty && of.batch > newest
    )
    for {
      there <- storage.read(state, ListRecursively(state))
      // A checksum before its file, which is readable without it.
      found = there.map(_.path).filter(isHidden).sortBy(_.toString).reverse
      _ <- if (found.isEmpty) Future.unit else storage.delete(Nil, found)
    } yield found
  }
}
