package sparkdstl.testing

import java.io.{File, IOException}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

class DirectWriteFileSystemSuite extends AnyFunSuite {

  private def within(entries: (String, String)*)(check: (FileSystem, Path, File) => Any): Unit =
    for (scheme <- Seq(CountingFileSystem.Scheme, FaultyFileSystem.Scheme))
      TemporaryDirectory.within { directory =>
        val configuration = FaultyFileSystem.configure(CountingFileSystem.configure(new Configuration(false)))
        entries.foreach { case (key, value) => configuration.set(key, value) }
        val base = new Path(s"$scheme://${directory.getPath}")
        check(FileSystem.newInstance(base.toUri, configuration), base, directory)
      }

  private def write(fileSystem: FileSystem, path: Path, overwrite: Boolean = true): Unit = {
    val stream = fileSystem.create(path, overwrite)
    stream.write(1)
    stream.close()
  }

  test("a file appears on close, under its local path, without a checksum file") {
    within() { (fileSystem, base, directory) =>
      val stream = fileSystem.create(new Path(base, "d/x"))
      stream.write(1)
      stream.flush()
      assert(TemporaryDirectory.filesIn(directory).isEmpty)
      stream.close()
      assert(TemporaryDirectory.filesIn(directory) == Set("d/x"))
      assert(fileSystem.getFileStatus(new Path(base, "d/x")).getLen == 1)
    }
  }

  test("an aborted file never appears") {
    within() { (fileSystem, base, directory) =>
      val stream = fileSystem.create(new Path(base, "x"))
      stream.write(1)
      stream.abort()
      stream.close()
      assert(TemporaryDirectory.filesIn(directory).isEmpty)
    }
  }

  test("of two exclusive writers that both began, the first to close wins") {
    within() { (fileSystem, base, _) =>
      val first = fileSystem.create(new Path(base, "x"), false)
      val second = fileSystem.create(new Path(base, "x"), false)
      second.close()
      intercept[FileAlreadyExistsException](first.close())
      intercept[FileAlreadyExistsException](fileSystem.create(new Path(base, "x"), false))
    }
  }

  test("paths carry their scheme, and the usual operations work") {
    within() { (fileSystem, base, directory) =>
      assert(fileSystem.mkdirs(new Path(base, "d/e")))
      write(fileSystem, new Path(base, "d/x"))
      val listed = fileSystem.listStatus(new Path(base, "d"))
      assert(listed.map(_.getPath).toSet == Set(new Path(base, "d/e"), new Path(base, "d/x")))
      assert(fileSystem.getFileStatus(new Path(base, "d")).isDirectory)
      assert(fileSystem.rename(new Path(base, "d/x"), new Path(base, "d/y")))
      assert(!fileSystem.exists(new Path(base, "d/x")))
      assert(fileSystem.listFiles(base, true).next().getPath == new Path(base, "d/y"))
      assert(fileSystem.globStatus(new Path(base, "d/*")).length == 2)
      val source = new File(directory, "source")
      java.nio.file.Files.write(source.toPath, Array[Byte](1, 2))
      fileSystem.copyFromLocalFile(new Path(source.toURI), new Path(base, "copy"))
      assert(TemporaryDirectory.filesIn(directory) == Set("source", "copy", "d/y"))
      assert(fileSystem.delete(new Path(base, "d"), true))
      assert(TemporaryDirectory.filesIn(directory) == Set("source", "copy"))
    }
  }

  test("requests are counted by kind") {
    TemporaryDirectory.within { directory =>
      val base = new Path(s"counting://${directory.getPath}")
      val fileSystem = base.getFileSystem(CountingFileSystem.configure(new Configuration(false)))
      CountingFileSystem.reset()
      write(fileSystem, new Path(base, "x"))
      fileSystem.open(new Path(base, "x")).close()
      fileSystem.exists(new Path(base, "y"))
      fileSystem.listStatus(base)
      fileSystem.delete(new Path(base, "x"), false)
      val counts = CountingFileSystem.snapshot()
      assert(counts.toString == "Write=1 Open=1 List=1 Head=1 Delete=1 Rename=0 MakeDirectory=0")
      assert(counts.written == Seq(new Path(base, "x")))
      CountingFileSystem.reset()
      assert(CountingFileSystem.snapshot()(Operation.Write) == 0)
    }
  }

  private def faulty(directory: File, entries: (String, String)*): (FileSystem, Path) = {
    val configuration = FaultyFileSystem.configure(new Configuration(false))
    entries.foreach { case (key, value) => configuration.set(key, value) }
    val base = new Path(s"faulty://${directory.getPath}")
    (FileSystem.newInstance(base.toUri, configuration), base)
  }

  test("a failed write has no effect") {
    TemporaryDirectory.within { directory =>
      val (fileSystem, base) = faulty(directory, FaultyFileSystem.FailRatio -> "1")
      intercept[IOException](write(fileSystem, new Path(base, "x")))
      assert(TemporaryDirectory.filesIn(directory).isEmpty)
    }
  }

  test("a write whose reply is lost fails and has taken effect") {
    TemporaryDirectory.within { directory =>
      val (fileSystem, base) = faulty(directory, FaultyFileSystem.LostReplyRatio -> "1")
      intercept[IOException](write(fileSystem, new Path(base, "x")))
      assert(TemporaryDirectory.filesIn(directory) == Set("x"))
    }
  }

  test("only matching paths are affected") {
    TemporaryDirectory.within { directory =>
      val (fileSystem, base) =
        faulty(directory, FaultyFileSystem.FailRatio -> "1", FaultyFileSystem.Paths -> ".*\\.log")
      write(fileSystem, new Path(base, "x"))
      intercept[IOException](write(fileSystem, new Path(base, "x.log")))
      assert(TemporaryDirectory.filesIn(directory) == Set("x"))
    }
  }

  test("the same seed gives the same faults") {
    def outcomes(): Seq[Boolean] = TemporaryDirectory.within { directory =>
      val (fileSystem, base) = faulty(directory, FaultyFileSystem.FailRatio -> "0.5", FaultyFileSystem.Seed -> "3")
      (1 to 30).map(n => scala.util.Try(write(fileSystem, new Path(base, n.toString))).isSuccess)
    }
    val first = outcomes()
    assert(first.toSet == Set(true, false))
    assert(outcomes() == first)
  }
}
