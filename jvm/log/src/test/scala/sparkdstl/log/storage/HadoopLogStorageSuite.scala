package sparkdstl.log.storage

import java.io.{File, IOException}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.{CountingFileSystem, FaultyFileSystem, Operation, TemporaryDirectory}

class HadoopLogStorageSuite extends AnyFunSuite with LogStorageBehaviour {
  private val configuration =
    FaultyFileSystem.configure(CountingFileSystem.configure(new Configuration(false)))
  configuration.set("fs.file.impl", classOf[LocalFileSystem].getName)

  private def withStorage(scheme: String, mode: PublishMode)(check: (LogStorage, Path) => Any): Any =
    TemporaryDirectory.within { directory =>
      val base = new Path(s"$scheme://${directory.getPath}")
      check(HadoopLogStorage(configuration, base, mode), base)
      val litter = TemporaryDirectory.filesIn(directory).filter(name => new File(name).getName.startsWith("."))
      assert(litter.isEmpty)
    }

  logStorage("local files")(withStorage("file", PublishMode.Auto))
  logStorage("direct writes")(withStorage("counting", PublishMode.Auto))

  test("renames where there is nothing better: what was put is read, and an exclusive put finds a conflict") {
    withStorage("counting", PublishMode.Rename) { (storage, base) =>
      val path = new Path(base, "x")
      storage.putIfAbsent(path, bytes("first"))
      intercept[FileAlreadyExistsException](storage.putIfAbsent(path, bytes("second")))
      storage.put(path, bytes("third"))
      assert(storage.read(path, 100) sameElements bytes("third"))
    }
  }

  test("a file system that publishes on close is written directly: one request") {
    withStorage("counting", PublishMode.Auto) { (storage, base) =>
      CountingFileSystem.reset()
      storage.put(new Path(base, "d/x"), bytes("x"))
      storage.putIfAbsent(new Path(base, "d/y"), bytes("y"))
      val counts = CountingFileSystem.snapshot()
      assert(counts.written.map(_.getName) == Seq("x", "y"))
      assert(counts(Operation.Rename) == 0)
    }
  }

  test("a file that is being written is not listed as an object, but as unpublished") {
    TemporaryDirectory.within { directory =>
      val base = new Path(directory.toURI)
      val storage = HadoopLogStorage(configuration, base)
      storage.put(new Path(base, "d/x"), bytes("x"))
      val unfinished = TemporaryNames.beside(new Path(base, "d/y"), "random")
      base.getFileSystem(configuration).asInstanceOf[LocalFileSystem].getRaw.create(unfinished).close()
      assert(storage.list(new Path(base, "d")).map(_.path.getName) == Seq("x"))
      assert(storage.listRecursively(base).map(_.path.getName) == Seq("x"))
      assert(storage.listUnpublished(base).map(_.path) == Seq(unfinished.makeQualified(base.toUri, null)))
    }
  }

  for (mode <- Seq(PublishMode.Direct, PublishMode.Rename); exclusive <- Seq(false, true)) {
    val put = if (exclusive) "exclusive put" else "put"

    def storageOn(directory: File, stream: FailingStreams.Fault): (LogStorage, Path) = {
      val fileSystem = new FailingStreams(stream)
      fileSystem.initialize(java.net.URI.create("file:///"), configuration)
      val publisher =
        if (mode == PublishMode.Direct) new DirectPublisher(fileSystem)
        else new RenamePublisher(fileSystem, LocalRename, () => "random")
      val base = new Path(directory.toURI)
      (new HadoopLogStorage(fileSystem, publisher, base), new Path(base, "x"))
    }

    def write(storage: LogStorage, path: Path): Unit =
      if (exclusive) storage.putIfAbsent(path, bytes("x")) else storage.put(path, bytes("x"))

    test(s"${mode.name} $put: an error on closing the stream is the caller's, and nothing is visible") {
      TemporaryDirectory.within { directory =>
        val (storage, path) = storageOn(directory, FailingStreams.OnClose)
        assert(intercept[IOException](write(storage, path)).getMessage == "injected on close")
        assert(!storage.exists(path))
        assert(storage.listUnpublished(path.getParent).isEmpty)
      }
    }

    test(s"${mode.name} $put: an error on writing is the caller's, and nothing is visible") {
      TemporaryDirectory.within { directory =>
        val (storage, path) = storageOn(directory, FailingStreams.OnWrite)
        assert(intercept[IOException](write(storage, path)).getMessage == "injected on write")
        assert(!storage.exists(path))
        assert(storage.listUnpublished(path.getParent).isEmpty)
      }
    }
  }

  test("an interrupt stays visible to the caller") {
    TemporaryDirectory.within { directory =>
      val stalling = FaultyFileSystem.configure(new Configuration(false))
      stalling.set(FaultyFileSystem.HangRatio, "1")
      stalling.set(FaultyFileSystem.HangMillis, "60000")
      stalling.setBoolean("fs.faulty.impl.disable.cache", true)
      val base = new Path(s"faulty://${directory.getPath}")
      val storage = HadoopLogStorage(stalling, base)
      Thread.currentThread().interrupt()
      intercept[IOException](storage.put(new Path(base, "x"), bytes("x")))
      assert(Thread.interrupted())
      assert(!storage.exists(new Path(base, "x")))
    }
  }

  test("objects are deleted in pages where the file system can, and all failures are reported") {
    val bulk = new BulkDeleting(size = 2, failing = Set("2", "5"))
    bulk.initialize(java.net.URI.create("file:///"), configuration)
    val base = new Path("file:///base")
    val storage = new HadoopLogStorage(bulk, new DirectPublisher(bulk), base)
    val error = intercept[IOException](storage.delete((1 to 5).map(n => new Path(base, n.toString))))
    assert(bulk.pages.map(_.map(_.getName)) == Seq(Seq("1", "2"), Seq("3", "4"), Seq("5")))
    assert(error.getMessage.contains("/2") && error.getSuppressed.exists(_.getMessage.contains("/5")))
  }

  test("objects outside the base are deleted one by one") {
    val bulk = new BulkDeleting(size = 2, failing = Set.empty)
    bulk.initialize(java.net.URI.create("file:///"), configuration)
    val storage = new HadoopLogStorage(bulk, new DirectPublisher(bulk), new Path("file:///base"))
    storage.delete(Seq(new Path("file:///nowhere/a"), new Path("file:///base2/b")))
    assert(bulk.pages.isEmpty)
  }
}
