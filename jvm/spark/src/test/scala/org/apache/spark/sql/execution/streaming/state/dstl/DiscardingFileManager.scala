package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.OutputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/**
 * The floor to compare with: changelogs are thrown away, so no state is durable, and what else is written takes one object
 * write a file.
 */
class DiscardingFileManager(path: Path, configuration: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, configuration) {

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    if (file.getName.contains(".changelog"))
      new CancellableFSDataOutputStream(OutputStream.nullOutputStream()) { override def cancel(): Unit = () }
    else {
      val created = fs.create(file, overwriteIfPossible)
      new CancellableFSDataOutputStream(created) { override def cancel(): Unit = created.abort(): Unit }
    }
}
