// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.nio.charset.StandardCharsets
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.TemporaryDirectory

/** The file manager with which Spark's readers change nothing in a checkpoint. */
class ReadOnlyFileManagerSuite extends AnyFunSuite {

  /** Runs a test with the directory of a store. */
  private def holds(name: String)(check: LocalPath => Any): Unit = test(name)(TemporaryDirectory.within { root =>
    val directory = Files.createDirectories(root.toPath.resolve("state/0/0"))
    Files.write(directory.resolve("1.changelog"), "changes".getBytes(StandardCharsets.UTF_8))
    check(directory)
  })

  private def everything(directory: LocalPath): Seq[String] = directory.toFile.list().sorted.toSeq

  holds("a read-only file manager passes no write and no new directory to storage") { directory =>
    val path = new Path(directory.toUri)
    val files = new ReadOnlyFileManager(path, new Configuration)
    for (name <- Seq("1.changelog", "2.changelog", "2.zip")) {
      val stream = files.createAtomic(new Path(path, name), overwriteIfPossible = true)
      stream.write(1)
      stream.close()
    }
    files.mkdirs(new Path(path, "SSTs"))
    assert(everything(directory) == Seq("1.changelog"))
    assert(Files.readString(directory.resolve("1.changelog")) == "changes")
  }

  holds("a read-only file manager refuses deletions and replacements") { directory =>
    val path = new Path(directory.toUri)
    val files = new ReadOnlyFileManager(path, new Configuration)
    val file = new Path(path, "1.changelog")
    val refused = Seq[() => Any](
      () => files.delete(file),
      () => files.createTempFile(new Path(path, "2.changelog")),
      () => files.renameTempFile(file, new Path(path, "2.changelog"), overwriteIfPossible = false)
    )
    for (attempt <- refused)
      assert(intercept[UnsupportedOperationException](attempt()).getMessage.contains("only read"))
    assert(everything(directory) == Seq("1.changelog"))
  }
}
