// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/**
 * One object write a file and no rename, for file systems that publish a file when its stream is closed: the best that
 * can be done for Spark's own changelogs.
 */
class DirectWriteFileManager(path: Path, configuration: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, configuration) {

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    val created = fs.create(file, overwriteIfPossible)
    new CancellableFSDataOutputStream(created) { override def cancel(): Unit = created.abort(): Unit }
  }
}
