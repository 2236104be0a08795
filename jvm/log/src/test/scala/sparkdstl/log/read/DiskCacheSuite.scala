// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.util.UUID

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.{LocalFiles, ObjectTail}

/** Files on a local disk that is in memory. */
private[read] final class MapFiles extends LocalFiles {
  val files = mutable.Map.empty[String, Array[Byte]]

  override def write(name: String, content: Array[Byte]): Future[Unit] = {
    files(name) = content
    Future.unit
  }

  override def read(name: String): Future[Array[Byte]] =
    files.get(name).fold(Future.failed[Array[Byte]](new java.io.FileNotFoundException(name)))(Future.successful)

  override def delete(name: String): Future[Unit] = {
    files.remove(name)
    Future.unit
  }
}

class DiskCacheSuite extends AnyFunSuite {
  private class Fixture(maxBytes: Long) {
    val files = new MapFiles
    val timer = new ManualTimer
    val copies = new DiskCache(files, maxBytes, TestRuntime(timer))
    var fetches = Vector.empty[Long]

    def get(batch: Long): Array[Byte] = {
      val found = copies.get(EntryPlace("root", new UUID(1, 1), batch)) {
        fetches :+= batch
        Future.successful(Some(ObjectTail(Array.fill(10)(batch.toByte), 100)))
      }
      found.value.get.get.get.bytes
    }
  }

  test("repeated scans fetch each entry once if all fit, and then read it from the local disk")(new Fixture(100) {
    for (_ <- 1 to 4; batch <- 0L until 10L) assert(get(batch).toSeq == Seq.fill(10)(batch.toByte))
    assert(fetches == (0L until 10L).toVector)
  })

  test("copies stay within their limit, and the least recently used is evicted first")(new Fixture(25) {
    get(1)
    get(2)
    get(1)
    timer.advance(60000)
    get(3)
    assert(copies.bytes == 20 && files.files.size == 2)
    get(1)
    get(3)
    assert(fetches == Vector(1, 2, 3))
  })

  test("repeated scans that exceed the limit keep some entries")(new Fixture(45) {
    (1 to 3).foreach { _ =>
      timer.advance(1000)
      (0L until 8L).foreach(get)
    }
    assert(fetches == (0L until 8L).toVector ++ (4L until 8L) ++ (4L until 8L))
  })

  test("a changed or missing copy is fetched again")(new Fixture(100) {
    get(1)
    files.files.toVector.foreach { case (name, bytes) => files.files.put(name, bytes.updated(3, 99.toByte)) }
    assert(get(1).toSeq == Seq.fill(10)(1.toByte))
    files.files.clear()
    assert(get(1).toSeq == Seq.fill(10)(1.toByte))
    assert(fetches == Vector(1, 1, 1))
    assert(copies.bytes == 10)
  })

  test("readers do not share copies")(new Fixture(100) {
    get(1)
    val other = copies.get(EntryPlace("root", new UUID(2, 2), 1))(Future.successful(None))
    assert(other.value.get.get.isEmpty)
  })

  test("while the disk is slow, copies that wait to be written take little memory") {
    val waiting = mutable.ArrayBuffer.empty[(Int, Promise[Unit])]
    val slow = new LocalFiles {
      override def write(name: String, content: Array[Byte]): Future[Unit] = {
        waiting += content.length -> Promise[Unit]()
        waiting.last._2.future
      }
      override def read(name: String): Future[Array[Byte]] = Future.successful(new Array[Byte](1 << 20))
      override def delete(name: String): Future[Unit] = Future.unit
    }
    val copies = new DiskCache(slow, 1L << 40, TestRuntime(new ManualTimer))
    val content = ObjectTail(new Array[Byte](1 << 20), 1L << 20)
    def get(batch: Long) = Completed.result(
      copies.get(EntryPlace("root", new UUID(1, 1), batch))(Future.successful(Some(content)))
    )
    assert((0L until 1000L).forall(get(_).nonEmpty))
    val written = waiting.map(_._1.toLong).sum
    assert(written <= (64L << 20) && copies.bytes == written)
    waiting.toVector.foreach(_._2.success(()))
    assert(get(1000).nonEmpty && waiting.count(!_._2.isCompleted) == 1, "the next one is copied")
  }
}
