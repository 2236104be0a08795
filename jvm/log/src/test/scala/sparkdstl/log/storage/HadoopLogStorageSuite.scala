// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{File, IOException}
import java.util.concurrent.Executors

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.storage.StorageOperation._
import sparkdstl.testing._

class HadoopLogStorageSuite extends AnyFunSuite with ObjectStoreBehaviour {
  private val configuration = Seq[Configuration => Configuration](
    CountingFileSystem.configure,
    FaultyFileSystem.configure,
    LookingFirstFileSystem.configure,
    RepeatingFileSystem.configure
  ).foldLeft(new Configuration(false))((made, add) => add(made))
  configuration.set("fs.file.impl", classOf[LocalFileSystem].getName)

  private def withStorage(scheme: String, mode: PublishMode)(check: (LogStorage, Path) => Any): Any =
    TemporaryDirectory.within { directory =>
      val base = new Path(s"$scheme://${directory.getPath}")
      check(HadoopLogStorage(configuration, base, mode), base)
      val litter = LocalFiles.below(directory.toPath).filter(name => new File(name).getName.startsWith("."))
      assert(litter.isEmpty)
    }

  /** A store behind threads, as in production. */
  private def withStore(scheme: String, mode: PublishMode)(check: (ObjectStore, Path) => Any): Any =
    withStorage(scheme, mode) { (storage, base) =>
      val store = new ThreadedObjectStore(storage, 8, 3, Executors.newCachedThreadPool())
      try check(store, base)
      finally store.close()
    }

  objectStore("local files")(withStore("file", PublishMode.Auto))
  objectStore("direct writes")(withStore("counting", PublishMode.Auto))

  private def payload(text: String): Payload = Payload(bytes(text))

  private def exists(storage: LogStorage, path: Path): Boolean =
    storage.perform(ListObjects(path.getParent)).exists(_.path.getName == path.getName)

  test("rename mode reads back each write, and an exclusive put of an existing object conflicts") {
    withStorage("counting", PublishMode.Rename) { (storage, base) =>
      val path = new Path(base, "x")
      storage.perform(Create(path, payload("first")))
      intercept[FileAlreadyExistsException](storage.perform(Create(path, payload("second"))))
      storage.perform(Put(path, payload("first")))
      storage.perform(Replace(path, payload("third")))
      assert(storage.perform(Read(path, 100)).get sameElements bytes("third"))
      storage.perform(Delete(Seq(path)))
      storage.perform(Replace(path, payload("fourth")))
      assert(storage.perform(Read(path, 100)).get sameElements bytes("fourth"))
      assert(!storage.replacesAtomically)
    }
  }

  test("the trial detects a client that checks for an object on open and overwrites it on close") {
    withStorage(LookingFirstFileSystem.Scheme, PublishMode.Auto) { (storage, base) =>
      storage.perform(Create(new Path(base, "x"), payload("first")))
      // Sequential creations look exclusive.
      intercept[FileAlreadyExistsException](storage.perform(Create(new Path(base, "x"), payload("second"))))
      assert(!storage.perform(TryCreation(new Path(base, "trial"))))
    }
  }

  test("direct mode is refused where a file can be seen before it is written whole") {
    withStorage("file", PublishMode.Direct) { (storage, base) =>
      val error = intercept[UnsupportedOperationException](storage.perform(TryCreation(new Path(base, "trial"))))
      assert(error.getMessage.contains("storage.publish to auto"))
    }
  }

  test("a client that repeats each write passes the trial of exclusive creation") {
    withStorage(RepeatingFileSystem.Scheme, PublishMode.Auto) { (storage, base) =>
      assert(storage.perform(TryCreation(new Path(base, "trial"))))
    }
  }

  test("a put to a file system that publishes on close takes one request") {
    withStorage("counting", PublishMode.Auto) { (storage, base) =>
      CountingFileSystem.reset()
      storage.perform(Put(new Path(base, "d/x"), payload("x")))
      storage.perform(Create(new Path(base, "d/y"), payload("y")))
      assert(storage.replacesAtomically)
      val counts = CountingFileSystem.snapshot()
      assert(counts.written.map(_.getName) == Seq("x", "y"))
      assert(counts(Operation.Rename) == 0)
    }
  }

  test("an unfinished file is listed as unpublished and not as an object") {
    TemporaryDirectory.within { directory =>
      val base = new Path(directory.toURI)
      val storage = HadoopLogStorage(configuration, base)
      storage.perform(Put(new Path(base, "d/x"), payload("x")))
      val unfinished = TemporaryNames.beside(new Path(base, "d/y"), "random")
      base.getFileSystem(configuration).asInstanceOf[LocalFileSystem].getRaw.create(unfinished).close()
      assert(storage.perform(ListObjects(new Path(base, "d"))).map(_.path.getName) == Seq("x"))
      val (remains, objects) = storage.perform(ListRecursively(base)).partition(_.isUnpublished)
      assert(objects.map(_.path.getName) == Seq("x"))
      assert(remains.map(_.path) == Seq(unfinished.makeQualified(base.toUri, null)))
    }
  }

  test("an empty directory is in a recursive list, and can be deleted") {
    withStorage("file", PublishMode.Auto) { (storage, base) =>
      val object1 = new Path(base, "d/run/x")
      storage.perform(Put(object1, payload("x")))
      def listed: Seq[(String, Boolean)] =
        storage.perform(ListRecursively(base)).map(of => of.path.getName -> of.isEmptyDirectory)
      assert(listed == Seq("x" -> false))
      storage.perform(Delete(Seq(object1)))
      assert(listed == Seq("run" -> true) && storage.perform(ListObjects(new Path(base, "d"))).isEmpty)
      storage.perform(Delete(Seq(object1.getParent)))
      assert(listed == Seq("d" -> true))
    }
  }

  for (flat <- Seq(false, true))
    test(s"${if (flat) "an object store" else "a file system"} lists in the way that costs it least") {
      withStorage("file", PublishMode.Auto) { (storage, base) =>
        Seq("d/x", "d/below/y", "z").foreach(name => storage.perform(Put(new Path(base, name), payload(name))))
        val fileSystem = initialized(new OneListing(flat))
        val other = new HadoopLogStorage(fileSystem, new DirectPublisher(fileSystem), base)
        assert(other.perform(ListRecursively(base)).map(_.path.getName).toSet == Set("x", "y", "z"))
      }
    }

  for {
    mode <- Seq(PublishMode.Direct, PublishMode.Rename)
    exclusive <- Seq(false, true)
    fault <- Seq(FailingStreams.OnClose, FailingStreams.OnWrite)
  } {
    val put = if (exclusive) "exclusive put" else "put"
    test(s"$mode $put: an error ${fault.when} reaches the caller and leaves no object") {
      TemporaryDirectory.within { directory =>
        val fileSystem = initialized(new FailingStreams(fault))
        val publisher =
          if (mode == PublishMode.Direct) new DirectPublisher(fileSystem)
          else new RenamePublisher(fileSystem, LocalRename, () => "random")
        val base = new Path(directory.toURI)
        val storage = new HadoopLogStorage(fileSystem, publisher, base)
        val path = new Path(base, "x")
        val error = intercept[IOException] {
          if (exclusive) storage.perform(Create(path, payload("x"))) else storage.perform(Put(path, payload("x")))
        }
        assert(error.getMessage == s"injected ${fault.when}")
        assert(!exists(storage, path) && storage.perform(ListRecursively(base)).isEmpty)
      }
    }
  }

  private def initialized[T <: FileSystem](fileSystem: T): T = {
    fileSystem.initialize(java.net.URI.create("file:///"), configuration)
    fileSystem
  }

  test("a read error is thrown with the error of closing as suppressed") {
    val fileSystem = initialized(new FailingReads)
    val storage = new HadoopLogStorage(fileSystem, new DirectPublisher(fileSystem), new Path("/base"))
    val reads = Seq[Path => StorageOperation[_]](Read(_, 100), ReadTail(_, 100), ReadRange(_, 0, 3))
    reads.foreach { read =>
      val error = intercept[IOException](storage.perform(read(new Path("/base/x"))))
      assert(error.getMessage == "no route to host")
      assert(error.getSuppressed.map(_.getMessage).toSeq == Seq("Stream is closed"))
    }
    assert(fileSystem.readsAfterError == 0)
  }

  test("a read of an object's tail takes one status and one open") {
    withStorage("counting", PublishMode.Auto) { (storage, base) =>
      storage.perform(Put(new Path(base, "x"), payload("0123456789")))
      CountingFileSystem.reset()
      assert(storage.perform(ReadTail(new Path(base, "x"), 3)).get.bytes sameElements bytes("789"))
      val counts = CountingFileSystem.snapshot()
      assert(counts(Operation.Head) == 1 && counts(Operation.Open) == 1)
    }
  }

  test("the caller stays interrupted") {
    TemporaryDirectory.within { directory =>
      val stalling = FaultyFileSystem.configure(new Configuration(false))
      stalling.set(FaultyFileSystem.HangRatio, "1")
      stalling.set(FaultyFileSystem.HangMillis, "60000")
      stalling.setBoolean("fs.faulty.impl.disable.cache", true)
      val base = new Path(s"faulty://${directory.getPath}")
      val storage = HadoopLogStorage(stalling, base)
      Thread.currentThread().interrupt()
      intercept[IOException](storage.perform(Put(new Path(base, "x"), payload("x"))))
      assert(Thread.interrupted())
      assert(!exists(storage, new Path(base, "x")))
    }
  }

  test("bulk deletion deletes in pages and reports all failures") {
    val bulk = initialized(new BulkDeleting(size = 2, failing = Set("2", "5")))
    val base = new Path("file:///base")
    val storage = new HadoopLogStorage(bulk, new DirectPublisher(bulk), base)
    val error = intercept[IOException](storage.perform(Delete((1 to 5).map(n => new Path(base, n.toString)))))
    assert(bulk.pages.map(_.map(_.getName)) == Seq(Seq("1", "2"), Seq("3", "4"), Seq("5")))
    assert(error.getMessage.contains("/2") && error.getSuppressed.exists(_.getMessage.contains("/5")))
  }

  test("single objects and objects outside the base are deleted in bulk too") {
    val bulk = initialized(new BulkDeleting(size = 2, failing = Set.empty))
    val storage = new HadoopLogStorage(bulk, new DirectPublisher(bulk), new Path("file:///base"))
    val paths = Seq("file:/base/a", "file:/elsewhere/b", "file:/base2/c")
    storage.perform(Delete(paths.map(new Path(_))))
    assert(bulk.pages.map(_.map(_.toString)).toSet == paths.map(Seq(_)).toSet)
    assert(bulk.bases.map(_.toString).distinct.sorted == Seq("file:/base", "file:/base2", "file:/elsewhere"))
  }
}
