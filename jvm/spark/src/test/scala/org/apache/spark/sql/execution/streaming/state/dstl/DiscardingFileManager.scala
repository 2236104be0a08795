// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.OutputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** The floor to compare with: changelogs are thrown away, so no state is durable. */
class DiscardingFileManager(path: Path, configuration: Configuration)
    extends DirectWriteFileManager(path, configuration) {

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    if (file.getName.contains(".changelog"))
      new CancellableFSDataOutputStream(OutputStream.nullOutputStream()) { override def cancel(): Unit = () }
    else super.createAtomic(file, overwriteIfPossible)
}
