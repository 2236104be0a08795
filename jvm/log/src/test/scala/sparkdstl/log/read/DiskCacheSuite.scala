package sparkdstl.log.read

import java.util.UUID

import scala.collection.mutable
import scala.concurrent.Future

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.{LocalFiles, ObjectTail}

class DiskCacheSuite extends AnyFunSuite {

  private final class MapFiles extends LocalFiles {
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

  private final class Fixture(maxBytes: Long) {
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

  test("an entry is fetched once, and read from the local disk afterwards") {
    val f = new Fixture(100)
    (1 to 3).foreach(_ => assert(f.get(7).toSeq == Seq.fill(10)(7.toByte)))
    assert(f.fetches == Vector(7))
  }

  test("a scan of everything that fits fetches each entry once, however often it is repeated") {
    val f = new Fixture(100)
    (1 to 4).foreach(_ => (0L until 10L).foreach(f.get))
    assert(f.fetches == (0L until 10L).toVector)
  }

  test("copies take no more than they may, and the least recently used go first") {
    val f = new Fixture(25)
    f.get(1)
    f.get(2)
    f.get(1)
    f.timer.advance(60000)
    f.get(3)
    assert(f.copies.bytes == 20 && f.files.files.size == 2)
    f.get(1)
    f.get(3)
    assert(f.fetches == Vector(1, 2, 3))
  }

  test("of a scan of more than there is room for, repeated by every store, a part stays") {
    val f = new Fixture(45)
    (1 to 3).foreach { _ =>
      f.timer.advance(1000)
      (0L until 8L).foreach(f.get)
    }
    assert(f.fetches == (0L until 8L).toVector ++ (4L until 8L) ++ (4L until 8L))
  }

  test("a copy that was changed or has gone is fetched again") {
    val f = new Fixture(100)
    f.get(1)
    f.files.files.toVector.foreach { case (name, bytes) => f.files.files.put(name, bytes.updated(3, 99.toByte)) }
    assert(f.get(1).toSeq == Seq.fill(10)(1.toByte))
    f.files.files.clear()
    assert(f.get(1).toSeq == Seq.fill(10)(1.toByte))
    assert(f.fetches == Vector(1, 1, 1))
    assert(f.copies.bytes == 10)
  }

  test("what one reader has seen is not another's") {
    val f = new Fixture(100)
    f.get(1)
    val other = f.copies.get(EntryPlace("root", new UUID(2, 2), 1))(Future.successful(None))
    assert(other.value.get.get.isEmpty)
  }
}
