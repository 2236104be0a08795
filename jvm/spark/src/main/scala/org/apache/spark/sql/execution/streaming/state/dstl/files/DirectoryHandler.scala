package org.apache.spark.sql.execution.streaming.state.dstl.files

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** What Spark's file manager does in a checkpoint directory: each kind of directory has a handler. */
private[dstl] trait DirectoryHandler {
  def create(file: Path, overwrite: Boolean): CancellableFSDataOutputStream
  def open(file: Path): FSDataInputStream
  def exists(file: Path): Boolean
  def list(directory: Path, filter: PathFilter): Array[FileStatus]
  def delete(file: Path): Unit
}

/** A directory of plain files. The other handlers differ from it in what the log holds or decides. */
private[dstl] class PlainDirectory(files: CheckpointFiles) extends DirectoryHandler {
  override def create(file: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    PublishedFile(
      content => if (overwrite) files.replace(file, content) else files.create(file, content)(),
      () => files.createLarge(file, overwrite)
    )

  override def open(file: Path): FSDataInputStream = files.open(file)
  override def exists(file: Path): Boolean = files.exists(file)
  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = files.list(directory, filter)
  override def delete(file: Path): Unit = files.delete(file)

  /** The batch of an entry in `commits` or `offsets`. */
  protected final def batchOf(entry: Path): Option[Long] = entry.getName.toLongOption.filter(_ >= 0)
}
