package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.OutputStream

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.SegmentKind

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** Spark's names of a snapshot's zip, and of the checksum file beside it. */
private[dstl] object SnapshotNames {
  private val ChecksumEnding = SegmentKind.Snapshot.suffix + ".crc"

  def isZip(file: Path): Boolean = file.getName.endsWith(SegmentKind.Snapshot.suffix)

  def isChecksum(file: Path): Boolean = file.getName.endsWith(ChecksumEnding)

  /** The zip to which a checksum file belongs. */
  def zipOf(checksum: Path): Path = new Path(checksum.getParent, checksum.getName.stripSuffix(".crc"))
}

/** For files that need not exist. */
private[dstl] final class DiscardingStream extends CancellableFSDataOutputStream(OutputStream.nullOutputStream()) {
  override def cancel(): Unit = ()
}
