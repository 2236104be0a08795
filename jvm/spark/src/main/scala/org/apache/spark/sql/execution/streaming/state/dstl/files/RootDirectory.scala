// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.{FSDataInputStream, Path}

import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.CheckpointFiles

/**
 * A directory that may be a checkpoint, whose `metadata` holds the id of the query. At the start of a query Spark asks whether
 * that file exists, and then opens it: one read answers both.
 */
private[files] final class RootDirectory(root: Path, files: CheckpointFiles, driver: DriverSide)
    extends PlainDirectory(files) {
  import RootDirectory._

  // The content for the next call of `open`.
  @volatile private var metadata = Option.empty[Array[Byte]]

  override def exists(file: Path): Boolean =
    if (!isMetadata(file)) super.exists(file)
    else {
      metadata = read(file)
      driver.foundMetadata(root, metadata)
      metadata.nonEmpty
    }

  override def open(file: Path): FSDataInputStream = {
    val known = metadata.filter(_ => isMetadata(file))
    metadata = None
    known.fold(super.open(file))(CheckpointFiles.inMemory)
  }

  /** Spark deletes a temporary checkpoint at the end of its query. The end of the run would create its mark anew afterwards. */
  override def delete(file: Path): Unit = {
    if (files.isOwn(file)) driver.endOn(root)
    super.delete(file)
  }

  private def read(file: Path): Option[Array[Byte]] =
    files.beginning(file, UsualLength).flatMap { found =>
      if (Usual.matches(new String(found, UTF_8))) Some(found) else files.beginning(file, CheckpointFiles.Limit)
    }

  private def isMetadata(file: Path): Boolean = file.getName == "metadata" && files.isOwn(file.getParent)
}

private object RootDirectory {

  /** What Spark writes to `metadata`. A read of so many bytes needs no request for the file's length. */
  private val Usual = """\{"id":"[0-9a-f-]{36}"\}""".r
  private val UsualLength = """{"id":""}""".length + 36
}
