// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import java.io.FileNotFoundException

import scala.util.Using

import org.apache.hadoop.fs.{FSDataInputStream, Path}

import sparkdstl.log.read.SegmentInputStream

import org.apache.spark.sql.execution.streaming.state.dstl.driver.DriverSide
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.CheckpointFiles

/**
 * A directory that may be a checkpoint, whose `metadata` holds the id of the query. At the start of a query Spark asks whether
 * that file exists, and then opens it: one read answers both.
 */
private[files] final class RootDirectory(root: Path, files: CheckpointFiles, driver: DriverSide)
    extends PlainDirectory(files) {

  // The content for the next call of `open`.
  @volatile private var metadata = Option.empty[Array[Byte]]

  override def exists(file: Path): Boolean =
    if (!isMetadata(file)) super.exists(file)
    else {
      metadata =
        try Some(Using.resource(files.open(file))(_.readAllBytes()))
        catch { case _: FileNotFoundException => None }
      driver.foundMetadata(root, metadata)
      metadata.nonEmpty
    }

  override def open(file: Path): FSDataInputStream = {
    val known = metadata.filter(_ => isMetadata(file))
    metadata = None
    known.fold(super.open(file))(content => new FSDataInputStream(SegmentInputStream.of(content)))
  }

  private def isMetadata(file: Path): Boolean = file.getName == "metadata" && files.isOwn(file.getParent)
}
