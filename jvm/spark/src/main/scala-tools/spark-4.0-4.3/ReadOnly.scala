// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.{DstlCheckpointFileManager, DstlStateStoreProvider}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.EndingStream

/**
 * Reads a checkpoint and changes nothing in it. Spark's readers begin a changelog when they load a store with column families,
 * and make directories: neither reaches storage.
 */
private[tools] final class ReadOnlyFileManager(path: Path, configuration: Configuration)
    extends DstlCheckpointFileManager(path, configuration) {

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    EndingStream.discarding()

  override def createTempFile(file: Path): FSDataOutputStream = throw refusal("write", file)
  override def renameTempFile(from: Path, to: Path, overwriteIfPossible: Boolean): Unit = throw refusal("write", to)
  override def mkdirs(directory: Path): Unit = ()
  override def delete(file: Path): Unit = throw refusal("delete", file)

  private def refusal(what: String, file: Path) =
    new UnsupportedOperationException(s"a checkpoint that is only read was about to be changed: $what $file")
}

/** The provider of this project over files that it cannot change. */
private[tools] final class ReadOnlyStateStoreProvider extends DstlStateStoreProvider {
  override protected def fileManager: Class[_ <: CheckpointFileManager] = classOf[ReadOnlyFileManager]
}
