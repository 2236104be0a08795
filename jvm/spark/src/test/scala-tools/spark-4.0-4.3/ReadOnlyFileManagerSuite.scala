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
  private def withStore[T](test: LocalPath => T): T = TemporaryDirectory.within { root =>
    val directory = Files.createDirectories(root.toPath.resolve("state/0/0"))
    Files.write(directory.resolve("1.changelog"), "changes".getBytes(StandardCharsets.UTF_8))
    test(directory)
  }

  private def everything(directory: LocalPath): Seq[String] = directory.toFile.list().sorted.toSeq

  test("a read-only file manager passes no write and no new directory to storage")(withStore { directory =>
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
  })

  test("a read-only file manager refuses deletions and replacements")(withStore { directory =>
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
  })
}
