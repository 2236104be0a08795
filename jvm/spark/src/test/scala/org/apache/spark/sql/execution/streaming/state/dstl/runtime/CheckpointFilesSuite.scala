// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.testing.{DirectWriteFileSystem, FileSystemScheme, Operation}

class CheckpointFilesSuite extends AnyFunSuite {
  test("a missing file counts as deleted, also where the file system answers with an error") {
    val resources = new ProcessResources(null)
    val at = new Path("missing:///nowhere")
    val configuration = MissingFileSystem.configure(new Configuration(false))
    try new CheckpointFiles(at, configuration, LogOptions.default, resources).delete(new Path(at, "file"))
    finally resources.close()
  }
}

/** A file system without files. */
final class MissingFileSystem extends DirectWriteFileSystem(MissingFileSystem.Scheme) {
  override protected def before(operation: Operation, path: Path): Unit =
    throw new FileNotFoundException(s"$path does not exist")
}

object MissingFileSystem extends FileSystemScheme("missing", classOf[MissingFileSystem])
