// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{FileNotFoundException, IOException}

import scala.collection.mutable
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileContext, LocalFileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.TemporaryDirectory

/** The renames of HDFS and ABFS, on local files. */
class AtomicRenameSuite extends AnyFunSuite {
  private val configuration = new Configuration(false)
  configuration.set("fs.file.impl", classOf[LocalFileSystem].getName)
  configuration.set("fs.AbstractFileSystem.file.impl", "sparkdstl.testing.PlainLocalFs")
  configuration.set("fs.permissions.umask-mode", "022")

  private def within(atomic: Boolean)(check: (FileContextRename, String => Path) => Any): Any =
    TemporaryDirectory.within { directory =>
      val context = FileContext.getFileContext(directory.toURI, configuration)
      def file(name: String): Path = {
        val path = new java.io.File(directory, name)
        java.nio.file.Files.write(path.toPath, name.getBytes)
        new Path(path.toURI)
      }
      check(new FileContextRename(context, atomic), file)
    }

  private def content(path: Path): String =
    new String(java.nio.file.Files.readAllBytes(new java.io.File(path.toUri.getPath).toPath))

  test(
    "a file that replaces one of stock Spark can be read with Hadoop's checksums, and a new one beside an old checksum"
  ) {
    TemporaryDirectory.within { directory =>
      val stock = new LocalFileSystem
      stock.initialize(java.net.URI.create("file:///"), configuration)
      def write(name: String): Path = {
        val path = new Path(new java.io.File(directory, name).toURI)
        Using.resource(stock.create(path))(_.write(s"$name of stock Spark".getBytes))
        path
      }
      def ours(): Path = {
        val path = new java.io.File(directory, "ours")
        java.nio.file.Files.write(path.toPath, "ours".getBytes)
        new Path(path.toURI)
      }
      def read(path: Path): String = Using.resource(stock.open(path))(in => new String(in.readAllBytes()))
      val replaced = write("replaced")
      LocalRename.replace(ours(), replaced)
      assert(read(replaced) == "ours")
      val created = write("created")
      java.nio.file.Files.delete(new java.io.File(created.toUri).toPath)
      LocalRename.create(ours(), created)
      assert(read(created) == "ours")
      val taken = write("taken")
      intercept[FileAlreadyExistsException](LocalRename.create(ours(), taken))
      assert(new java.io.File(directory, ".taken.crc").exists && read(taken) == "taken of stock Spark")
    }
  }

  test("a creation refuses an existing target") {
    within(atomic = true) { (rename, file) =>
      val (from, to) = (file("from"), file("to"))
      intercept[FileAlreadyExistsException](rename.create(from, to))
      assert(content(to) == "to" && content(from) == "from")
    }
  }

  for (atomic <- Seq(true, false))
    test(s"${if (atomic) "an atomic" else "a stepwise"} replacement works with and without a target") {
      within(atomic) { (rename, file) =>
        val (from, to) = (file("from"), file("to"))
        rename.replace(from, to)
        assert(content(to) == "from")
        rename.replace(to, new Path(to.getParent, "new"))
        assert(content(new Path(to.getParent, "new")) == "from")
        assert(rename.replacesAtomically == atomic)
      }
    }

  test("a missing source does not show that a rename by the file system failed") {
    TemporaryDirectory.within { directory =>
      val rename = new FileSystemRename(new Path(directory.toURI).getFileSystem(configuration))
      val (from, to) = (new Path(directory.toURI.resolve("from")), new Path(directory.toURI.resolve("to")))
      val error = intercept[IOException](rename.create(from, to))
      assert(!StorageErrors.isDefinite(error) && StorageErrors.isRetryable(error))
    }
  }

  test("a stepwise replacement deletes only an existing target") {
    val steps = mutable.ArrayBuffer.empty[String]
    var taken = false
    val rename = new AtomicRename {
      override def replacesAtomically: Boolean = false
      override def create(from: Path, to: Path): Unit = {
        steps += "create"
        if (taken) throw new FileAlreadyExistsException("taken")
      }
      override protected def delete(path: Path): Unit = {
        steps += "delete"
        taken = false
      }
    }
    rename.replace(new Path("/a"), new Path("/b"))
    assert(steps == Seq("create"))
    taken = true
    rename.replace(new Path("/a"), new Path("/b"))
    assert(steps == Seq("create", "create", "delete", "create"))
  }

  test("the error about a missing source is no conflict with the target") {
    within(atomic = true) { (rename, file) =>
      val to = file("to")
      val gone = new Path(to.getParent, "gone")
      for (act <- Seq[(Path, Path) => Unit](rename.create, rename.replace)) {
        val error = intercept[java.io.IOException](act(gone, new Path(to.getParent, "other")))
        assert(!StorageErrors.isDefinite(error) && error.getCause.isInstanceOf[FileNotFoundException])
      }
    }
  }
}
