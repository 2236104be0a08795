package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.File
import java.lang.reflect.Modifier
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, PathFilter}
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.TemporaryDirectory

import org.apache.spark.sql.execution.streaming.checkpointing._
import org.apache.spark.sql.execution.streaming.state.RocksDBConf

/** Files with checksums that are written by the calling thread are those that Spark writes with threads of its own. */
class ChecksummedFilesSuite extends AnyFunSuite {
  private def stores(checksums: Boolean): RocksDBConf = RocksDBConf().copy(fileChecksumEnabled = checksums)

  /** A directory with one file, as written here and as written by Spark. */
  private final class Store(directory: File) {
    val root = new Path(directory.toURI)
    val file = new Path(root, "1.changelog")
    val local: LocalPath = directory.toPath.resolve("1.changelog")
    val checksum: LocalPath = directory.toPath.resolve("1.changelog.crc")

    def ours: CheckpointFileManager = {
      val configuration = new Configuration
      configuration.set(ChecksummedFiles.FileManager, classOf[NotedFiles].getName)
      CheckpointFileManager.create(root, TaskChecksums.configuration(stores(checksums = true), configuration))
    }

    def sparks: CheckpointFileManager = new ChecksumCheckpointFileManager(
      new FileSystemBasedCheckpointFileManager(root, new Configuration),
      numThreads = 2,
      skipCreationIfFileMissingChecksum = false
    )

    def write(to: CheckpointFileManager): Unit = {
      val out = to.createAtomic(file, overwriteIfPossible = true)
      out.write("changes".getBytes(UTF_8))
      out.close()
    }

    def read(from: CheckpointFileManager): String = {
      val in = from.open(file)
      val content = new String(in.readAllBytes(), UTF_8)
      in.close()
      content
    }
  }

  private def within[T](test: Store => T): T = TemporaryDirectory.within { directory =>
    NotedFiles.forget()
    test(new Store(directory))
  }

  test("Spark reads what is written here, and the other way round; no thread but the caller's asks for a file") {
    within { store =>
      store.write(store.ours)
      assert(Files.exists(store.checksum))
      assert(store.read(store.sparks) == "changes")
      store.write(store.sparks)
      assert(store.read(store.ours) == "changes")
      assert(NotedFiles.threads == Set(Thread.currentThread()))
    }
  }

  test("a file that is not what its checksum says is not read, and one without is") {
    within { store =>
      store.write(store.ours)
      Files.write(store.local, "chances".getBytes(UTF_8))
      // Hadoop's own, of local files.
      Files.delete(store.local.resolveSibling(".1.changelog.crc"))
      val error = intercept[Exception](store.read(store.ours))
      assert(error.getMessage.contains("CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"), error)
      Files.delete(store.checksum)
      assert(store.read(store.ours) == "chances")
    }
  }

  test("a file goes with its checksum") {
    within { store =>
      store.write(store.ours)
      store.ours.delete(store.file)
      assert(!Files.exists(store.local) && !Files.exists(store.checksum))
    }
  }

  test("each method of a file manager is passed on") {
    val filter: PathFilter = _ => true
    val methods = classOf[CheckpointFileManager].getMethods
      .filterNot(method => Modifier.isStatic(method.getModifiers) || method.getName.contains("$"))
    assert(methods.length > 5)
    methods.foreach { method =>
      within { store =>
        store.write(store.sparks)
        val place = if (Set("list", "mkdirs")(method.getName)) store.root else store.file
        val arguments = method.getParameterTypes.map[AnyRef] { of =>
          if (of == classOf[Path]) place else if (of == classOf[PathFilter]) filter else java.lang.Boolean.TRUE
        }
        method.invoke(store.ours, arguments: _*) match {
          case stream: java.io.Closeable => stream.close()
          case _ =>
        }
        assert(NotedFiles.called(method.getName), method)
      }
    }
  }

  test("without checksums Spark's manager is given its files as they are") {
    val configuration = new Configuration
    assert(TaskChecksums.configuration(stores(checksums = false), configuration) eq configuration)
  }
}

/** Notes who asks for what. */
class NotedFiles(path: Path, configuration: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, configuration) {
  import NotedFiles.note

  override def createAtomic(
      file: Path,
      overwriteIfPossible: Boolean
  ): CheckpointFileManager.CancellableFSDataOutputStream =
    note("createAtomic")(super.createAtomic(file, overwriteIfPossible))
  override def open(file: Path): org.apache.hadoop.fs.FSDataInputStream = note("open")(super.open(file))
  override def list(directory: Path, filter: PathFilter): Array[org.apache.hadoop.fs.FileStatus] =
    note("list")(super.list(directory, filter))
  override def mkdirs(directory: Path): Unit = note("mkdirs")(super.mkdirs(directory))
  override def exists(file: Path): Boolean = note("exists")(super.exists(file))
  override def delete(file: Path): Unit = note("delete")(super.delete(file))
  override def isLocal: Boolean = note("isLocal")(super.isLocal)
  override def createCheckpointDirectory(): Path = note("createCheckpointDirectory")(super.createCheckpointDirectory())
  override def close(): Unit = note("close")(super.close())
}

object NotedFiles {
  // Guarded by this.
  private var noted = Seq.empty[(String, Thread)]

  private def note[T](name: String)(body: => T): T = {
    synchronized(noted :+= name -> Thread.currentThread())
    body
  }

  def forget(): Unit = synchronized { noted = Nil }
  def called(name: String): Boolean = synchronized(noted.exists(_._1 == name))
  def threads: Set[Thread] = synchronized(noted.map(_._2).toSet)
}
