// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}

import sparkdstl.log.storage.HadoopLogStorage

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.dstl.files.{CheckpointDirectory, PlainDirectory}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.SparkVersion

/**
 * Puts the log below Spark's checkpoint files. Set it as `spark.sql.streaming.checkpointFileManagerClass`.
 *
 * Changelogs and their checksums are segments in the log, and so are snapshots with [[DstlStateStoreProvider]]; Spark creates,
 * opens, lists and deletes them like files. A commit entry is created after all segments of the batch are durable, and carries
 * them. Everything else is a file, and each request for it is retried and hedged. What is not in the log is read as a plain
 * file, so a query continues a checkpoint of stock Spark.
 *
 * @param path          the directory that this file manager is for
 * @param configuration with the session's SQL configuration, which holds the log's options
 */
class DstlCheckpointFileManager(path: Path, configuration: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, configuration) {

  SparkVersion.check()

  private val handler: PlainDirectory = {
    val environment = DstlEnvironment.get
    import environment.{driver, resources, workers}
    CheckpointDirectory.handler(path, configuration, resources, driver, workers)
  }

  /** An object store has no directories, and Spark's way to make one asks for each that contains it. */
  override def createCheckpointDirectory(): Path =
    if (HadoopLogStorage.publishesOnClose(fs, path)) fs.makeQualified(path) else super.createCheckpointDirectory()

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    handler.create(file, overwriteIfPossible)

  override def open(file: Path): FSDataInputStream = handler.open(file)

  override def exists(file: Path): Boolean = handler.exists(file)

  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = handler.list(directory, filter)

  override def delete(file: Path): Unit = handler.delete(file)
}
