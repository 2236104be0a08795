// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.CheckpointFiles

/**
 * The operations of Spark's file manager in a directory of plain files. Each other kind of checkpoint directory has a subclass,
 * which overrides what the log holds or decides.
 */
private[dstl] class PlainDirectory(files: CheckpointFiles) {
  def create(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    PublishedFile(
      content => if (overwrite) files.replace(file, content) else files.create(file, content),
      () => files.createLarge(file, overwrite)
    )

  def open(file: Path): FSDataInputStream = files.open(file)
  def exists(file: Path): Boolean = files.exists(file)
  def list(directory: Path, filter: PathFilter): Array[FileStatus] =
    files.list(directory).filter(status => filter.accept(status.getPath)).toArray
  def delete(file: Path): Unit = files.delete(file)

  /** The batch of an entry in `commits` or `offsets`. */
  protected final def batchOf(entry: Path): Option[Long] = entry.getName.toLongOption.filter(_ >= 0)
}
