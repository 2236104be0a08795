// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.io.FileNotFoundException
import java.nio.file.{Files, Path => LocalPath}

import scala.concurrent.Await
import scala.concurrent.duration._

import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

import sparkdstl.log.request.{RequestFixture, Requests, ScriptedStore, StorageClient}
import sparkdstl.log.request.ScriptedStore.{Fail, Hang}
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Put
import sparkdstl.testing.TemporaryDirectory

class FileDownloadsSuite extends AnyFunSuite with Eventually {
  override implicit val patienceConfig: PatienceConfig = PatienceConfig(Span(20, Seconds), Span(10, Millis))

  private val atOnce = 3

  private final class Storage(directory: LocalPath) {
    val store = new ScriptedStore
    private val requests = new Requests(RequestFixture.none, TestRuntime(new ManualTimer))
    val downloads =
      new FileDownloads(new StorageClient(store, requests), atOnce, 60000, Await.result(_, 1.minute), rangeLength = 10)

    def put(name: String, length: Int): Download = {
      store.memory.begin(Put(path(name), Payload(contentOf(length)))): Unit
      wanted(name, length)
    }

    def wanted(name: String, length: Int): Download =
      downloads.ofFile(path(name), length.toLong, directory.resolve(name))
  }

  private def holds(name: String)(check: Storage => Any): Unit =
    test(name)(TemporaryDirectory.within(directory => check(new Storage(directory.toPath))))

  private def path(name: String): Path = new Path(s"memory:/store/$name")

  private def contentOf(length: Int): Array[Byte] = Array.tabulate(length)(_.toByte)

  holds("files of any length are downloaded whole and replace existing ones") { storage =>
    val lengths = Seq(0, 1, 9, 10, 11, 35)
    val files = lengths.map(length => storage.put(s"whole$length", length))
    files.foreach(file => Files.write(file.to, new Array[Byte](100)))
    storage.downloads.fetch(files)
    lengths.zip(files).foreach { case (length, file) =>
      assert(Files.readAllBytes(file.to).toSeq == contentOf(length).toSeq)
    }
    assert(storage.store.count("readRange") == 1 + 1 + 1 + 2 + 4)
  }

  holds("the number of concurrent range requests over all files is bounded") { storage =>
    val files = Seq(storage.put("many1", 25), storage.put("many2", 25))
    val unanswered = Vector.fill(6)(new Hang)
    storage.store.script("readRange", unanswered: _*)
    val fetching = new Thread(() => storage.downloads.fetch(files))
    fetching.start()
    eventually(assert(storage.store.count("readRange") == atOnce))
    // Ranges are written in order: a free place is used only after the first range is written.
    unanswered(1).release()
    assert(storage.store.count("readRange") == atOnce)
    unanswered(0).release()
    eventually(assert(storage.store.count("readRange") == atOnce + 2))
    unanswered.drop(2).foreach { of =>
      eventually(assert(storage.store.count("readRange") > unanswered.indexOf(of)))
      of.release()
    }
    fetching.join()
    files.foreach(file => assert(Files.readAllBytes(file.to).toSeq == contentOf(25).toSeq))
  }

  holds("the error about a missing, short or unreadable file names it") { storage =>
    assert(intercept[FileNotFoundException](storage.downloads.fetch(Seq(storage.wanted("missing", 5)))).getMessage
      .contains("store/missing"))
    storage.put("shorter", 12): Unit
    val shorter = storage.wanted("shorter", 15)
    assert(intercept[Exception](storage.downloads.fetch(Seq(shorter))).getMessage.contains("store/shorter"))
    val file = storage.put("unreadable", 5)
    storage.store.script("readRange", Fail())
    assert(intercept[Exception](storage.downloads.fetch(Seq(file))).getMessage.contains("store/unreadable"))
  }
}
