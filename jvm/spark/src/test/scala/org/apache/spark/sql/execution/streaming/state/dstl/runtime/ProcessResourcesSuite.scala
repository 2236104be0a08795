// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.io.{File, IOException}
import java.security.PrivilegedAction
import java.util.concurrent.{ConcurrentLinkedQueue, ThreadPoolExecutor}
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.Await
import scala.concurrent.duration.DurationInt

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.security.UserGroupInformation
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.log.storage.StorageOperation.ListObjects
import sparkdstl.log.storage.ThreadedObjectStore
import sparkdstl.testing.{DirectWriteFileSystem, FileSystemScheme, Operation}

import org.apache.spark.SparkConf
import org.apache.spark.util.Utils

class ProcessResourcesSuite extends AnyFunSuite {
  import ClosableFileSystem.{at, configuration}

  private type Opened = PrivilegedAction[ThreadedObjectStore]

  private def withResources(test: ProcessResources => Any): Unit = {
    val resources = new ProcessResources(null)
    try test(resources): Unit
    finally resources.close()
  }
  private def options(key: String, value: String): LogOptions = LogOptions.parse(Seq(LogOptions.Prefix + key -> value))

  test("limits of a process are the largest of its queries, also below the defaults") {
    withResources { resources =>
      val budget = resources.uploadBudget(options("upload.maxInFlight", "1m"))
      budget.acquire(1024 * 1024)
      val second = budget.acquire(1)
      assert(!second.isCompleted)
      resources.uploadBudget(options("upload.maxInFlight", "2m")): Unit
      assert(second.isCompleted)

      def threads(number: Int) =
        resources.snapshotThreads(options("materialize.numThreads", s"$number")).asInstanceOf[ThreadPoolExecutor]
      assert(Seq(1, 3, 2).map(threads(_).getCorePoolSize) == Seq(1, 3, 3))
    }
  }

  test("a file system that a program has closed is replaced with the next query") {
    withResources { resources =>
      val conf = configuration()
      def list(): Any = {
        val store = resources.store(at, conf, LogOptions.default)
        Await.result(store.begin(ListObjects(at)).result, 60.seconds)
      }
      list()
      at.getFileSystem(conf).close()
      list()
    }
  }

  test("without Hadoop's cache of file systems there is one for all queries with the same settings, and for no others") {
    withResources { resources =>
      val before = ClosableFileSystem.made.get
      val stores = Seq("a", "a", "b").map(user =>
        resources.store(
          at,
          configuration("fs.closable.impl.disable.cache" -> "true", "fs.closable.user" -> user),
          LogOptions.default
        )
      )
      assert((stores(0) eq stores(1)) && !(stores(0) eq stores(2)))
      assert(ClosableFileSystem.made.get - before == 2)
    }
  }

  test("a client that Hadoop does not share is shared by all paths with the same settings and user, and by no others") {
    withResources { resources =>
      val conf = configuration("fs.closable.impl.disable.cache" -> "true")
      def client(path: String) = resources.fileSystem(new Path(at, path), conf)
      val other = UserGroupInformation.createRemoteUser("other")
      val ofOther = other.doAs((() => client("a")): PrivilegedAction[FileSystem])
      assert((client("a") eq client("b")) && !(client("a") eq ofOther))
    }
  }

  test("requests of a user's query are made as that user and with that user's client, also beside other users") {
    withResources { resources =>
      val users = Seq("first", "second").map(UserGroupInformation.createRemoteUser)
      val stores = users.map(_.doAs((() => resources.store(at, configuration(), LogOptions.default)): Opened))
      for ((store, user) <- stores.zip(users)) {
        Await.result(store.begin(ListObjects(at)).result, 60.seconds): Unit
        assert(ClosableFileSystem.lastUsers == user -> user)
      }
    }
  }

  test("a base path needs one client, however many checkpoints are opened with it") {
    withResources { resources =>
      val conf = configuration("fs.closable.impl.disable.cache" -> "true")
      val log = options("basePath", new Path(at, "log").toString)
      val made = Seq.fill(2) {
        resources.storage(Checkpoint(at, conf, log)): Unit
        ClosableFileSystem.made.get
      }
      assert(made.distinct.size == 1)
    }
  }

  test("clients that Hadoop does not share are closed at the end, also after an error of another") {
    val resources = new ProcessResources(null)
    val before = ClosableFileSystem.open.get
    for (user <- Seq("a", "b", ClosableFileSystem.Failing)) {
      val conf = configuration("fs.closable.impl.disable.cache" -> "true", "fs.closable.user" -> user)
      resources.fileSystem(at, conf): Unit
      resources.store(at, conf, LogOptions.default): Unit
    }
    assert(ClosableFileSystem.open.get - before == 3)
    assert(intercept[IOException](resources.close()).getMessage == "not closed properly")
    assert(ClosableFileSystem.open.get == before)
  }

  test("what was read to rebuild stores is kept in Spark's local directory until the end") {
    def caches: Set[String] = new File(Utils.getLocalDir(new SparkConf)).list().filter(_.startsWith("dstl-")).toSet
    val before = caches
    withResources { resources =>
      assert(resources.diskCache(LogOptions.default).nonEmpty)
      assert((caches -- before).size == 1)
    }
    assert((caches -- before).isEmpty)
  }
}

/** A file system that fails after it was closed. */
final class ClosableFileSystem extends DirectWriteFileSystem(ClosableFileSystem.Scheme) {
  @volatile private var isClosed = false
  private val owner = UserGroupInformation.getCurrentUser
  ClosableFileSystem.made.incrementAndGet()
  ClosableFileSystem.makers.add(ClosableFileSystem.caller): Unit
  ClosableFileSystem.open.incrementAndGet()

  override protected def before(operation: Operation, path: Path): Unit = {
    ClosableFileSystem.lastUsers = owner -> UserGroupInformation.getCurrentUser
    if (isClosed) throw new IOException("Filesystem closed")
  }

  override def close(): Unit = {
    isClosed = true
    ClosableFileSystem.open.decrementAndGet(): Unit
    super.close()
    if (getConf.get("fs.closable.user") == ClosableFileSystem.Failing) throw new IOException("not closed properly")
  }
}

object ClosableFileSystem extends FileSystemScheme("closable", classOf[ClosableFileSystem]) {
  val Failing = "failing"
  val made = new AtomicInteger

  /** The classes that have asked Hadoop for a client. */
  val makers = new ConcurrentLinkedQueue[String]
  val open = new AtomicInteger

  /** The users whose client made the last request, and as whom it was made. */
  @volatile var lastUsers: (UserGroupInformation, UserGroupInformation) = _
  val at = new Path("closable:///nowhere")

  private val unasked = """(java|jdk|org\.apache\.hadoop|sparkdstl\.testing)\..*|.*ClosableFileSystem.*"""

  private def caller: String =
    Thread.currentThread().getStackTrace.map(_.getClassName).find(!_.matches(unasked)).getOrElse("none")

  def configuration(settings: (String, String)*): Configuration = {
    val made = configure(new Configuration(false))
    settings.foreach { case (key, value) => made.set(key, value) }
    made
  }
}
