// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException, IOException}
import java.util.concurrent.{CountDownLatch, Executors}

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.DurationInt
import scala.util.Try

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.scalatest.funsuite.AnyFunSuite
import sparkdstl.log.storage.StorageOperation._

/** The behaviour of every [[ObjectStore]]. */
trait ObjectStoreBehaviour { this: AnyFunSuite =>

  /** Waits for an attempt and throws its error. */
  protected def get[T](attempt: Attempt[T]): T = Await.result(attempt.result, 1.minute)

  /** Waits for the read of an existing object. */
  protected def found[T](attempt: Attempt[Option[T]]): T = get(attempt).get

  private def unpublished(storage: ObjectStore, base: Path): Seq[StoredObject] =
    get(storage.begin(ListRecursively(base))).filter(_.isUnpublished)

  protected def bytes(text: String): Array[Byte] = text.getBytes("UTF-8")

  /**
   * @param withStorage
   *   runs a test with empty storage and the base of its paths
   */
  protected def objectStore(name: String)(withStorage: ((ObjectStore, Path) => Any) => Any): Unit = {
    def holds(what: String)(check: (ObjectStore, Path) => Any): Unit = test(s"$name: $what")(withStorage(check))

    holds("a put object is read whole and in ranges") { (storage, base) =>
      val path = new Path(base, "a/b/c.log")
      get(storage.begin(Put(path, Payload(bytes("0123456789")))))
      assert(found(storage.begin(Read(path, 10))) sameElements bytes("0123456789"))
      assert(found(storage.begin(ReadRange(path, 3, 4))) sameElements bytes("3456"))
      assert(found(storage.begin(ReadRange(path, 0, 10))) sameElements bytes("0123456789"))
      val tail = found(storage.begin(ReadTail(path, 4)))
      assert((tail.bytes sameElements bytes("6789")) && tail.length == 10 && !tail.isWhole)
      val whole = found(storage.begin(ReadTail(path, 11)))
      assert((whole.bytes sameElements bytes("0123456789")) && whole.isWhole)
    }

    holds("an empty object exists") { (storage, base) =>
      get(storage.begin(Put(new Path(base, "empty"), Payload(Array.emptyByteArray))))
      assert(found(storage.begin(Read(new Path(base, "empty"), 0))).isEmpty)
      assert(found(storage.begin(ReadTail(new Path(base, "empty"), 10))).length == 0)
    }

    holds("a replacement replaces a longer object too") { (storage, base) =>
      val path = new Path(base, "x")
      get(storage.begin(Replace(path, Payload(bytes("something long")))))
      get(storage.begin(Replace(path, Payload(bytes("short")))))
      assert(found(storage.begin(Read(path, 100))) sameElements bytes("short"))
    }

    holds("one of two concurrent exclusive creations is refused") { (storage, base) =>
      assert(get(storage.begin(TryCreation(new Path(base, "trials/1")))))
      assert(unpublished(storage, base).isEmpty)
    }

    holds("an exclusive creation fails if the object exists and does not change it") { (storage, base) =>
      val path = new Path(base, "batches/1.log")
      get(storage.begin(Create(path, Payload(bytes("first")))))
      val error = intercept[FileAlreadyExistsException](get(storage.begin(Create(path, Payload(bytes("second"))))))
      assert(error.getMessage.contains("1.log"))
      assert(found(storage.begin(Read(path, 100))) sameElements bytes("first"))
      assert(get(storage.begin(ListObjects(path.getParent))).map(_.path.getName) == Seq("1.log"))
      assert(unpublished(storage, base).isEmpty)
    }

    holds("one of many concurrent exclusive creations succeeds, and its content stays") { (storage, base) =>
      for (round <- 1 to 20) {
        val path = new Path(base, s"$round.log")
        val outcomes = concurrently(8)(n => get(storage.begin(Create(path, Payload(bytes(s"writer $n"))))): Unit)
        val winners = outcomes.zipWithIndex.collect { case (outcome, n) if outcome.isSuccess => n }
        assert(winners.size == 1, outcomes)
        assert(outcomes.flatMap(_.failed.toOption).forall(_.isInstanceOf[FileAlreadyExistsException]), outcomes)
        assert(found(storage.begin(Read(path, 100))) sameElements bytes(s"writer ${winners.head}"))
      }
      assert(unpublished(storage, base).isEmpty)
    }

    holds("the parts of a payload are written in order on each put") { (storage, base) =>
      val path = new Path(base, "d/parts")
      val content = Payload(Vector(bytes("one "), Array.emptyByteArray, bytes("two "), bytes("three")))
      (1 to 3).foreach(_ => get(storage.begin(Put(path, content))))
      assert(found(storage.begin(Read(path, 100))) sameElements bytes("one two three"))
      assert(get(storage.begin(ListRecursively(base))).map(_.path.getName) == Seq("parts"))
      assert(unpublished(storage, base).isEmpty)
    }

    holds("concurrent puts of the same content all succeed") { (storage, base) =>
      val path = new Path(base, "same")
      assert(concurrently(8)(_ => get(storage.begin(Put(path, Payload(bytes("same")))))).forall(_.isSuccess))
      assert(found(storage.begin(Read(path, 100))) sameElements bytes("same"))
    }

    holds("a read of a missing object fails with FileNotFoundException") { (storage, base) =>
      val path = new Path(base, "missing")
      intercept[FileNotFoundException](get(storage.begin(Read(path, 10))))
      intercept[FileNotFoundException](get(storage.begin(ReadRange(path, 0, 1))))
      intercept[FileNotFoundException](get(storage.begin(ReadTail(path, 1))))
    }

    holds("an object longer than allowed is refused, with both lengths") { (storage, base) =>
      get(storage.begin(Put(new Path(base, "big"), Payload(new Array[Byte](11)))))
      val message = intercept[IOException](get(storage.begin(Read(new Path(base, "big"), 10)))).getMessage
      assert(message.contains("11") && message.contains("10") && message.contains("big"))
    }

    holds("a range past the end fails with EOFException naming path and offset") { (storage, base) =>
      get(storage.begin(Put(new Path(base, "object"), Payload(bytes("0123456789")))))
      val error = intercept[EOFException](get(storage.begin(ReadRange(new Path(base, "object"), 7, 4))))
      assert(error.getMessage.contains("object") && error.getMessage.contains("7"))
      assert(!StorageErrors.isRetryable(error))
      intercept[EOFException](get(storage.begin(ReadRange(new Path(base, "object"), 70, 4))))
    }

    holds("a list shows the objects of one directory, and a recursive list those below it too") { (storage, base) =>
      put(storage, base, "d/1", "d/2", "d/below/3", "other/4")
      val listed = get(storage.begin(ListObjects(new Path(base, "d"))))
      assert(listed.map(_.path.getName).toSet == Set("1", "2"))
      assert(listed.forall(_.length == 3))
      assert(listed.forall(o => found(storage.begin(Read(o.path, 3))).length == 3))
      val below = get(storage.begin(ListRecursively(new Path(base, "d"))))
      assert(below.map(_.path.getName).toSet == Set("1", "2", "3"))
    }

    holds("a missing directory lists as empty") { (storage, base) =>
      assert(get(storage.begin(ListObjects(new Path(base, "nowhere")))).isEmpty)
      assert(get(storage.begin(ListRecursively(new Path(base, "nowhere")))).isEmpty)
    }

    holds("a deletion takes many objects and ignores missing ones") { (storage, base) =>
      put(storage, base, "1", "2", "3")
      get(storage.begin(Delete(Seq("1", "missing", "3").map(new Path(base, _)))))
      assert(get(storage.begin(ListObjects(base))).map(_.path.getName) == Seq("2"))
      get(storage.begin(Delete(Nil)))
    }
  }

  /** Puts objects whose content is their name. */
  private def put(storage: ObjectStore, base: Path, names: String*): Unit =
    names.foreach(name => get(storage.begin(Put(new Path(base, name), Payload(bytes(name))))))

  private def concurrently(threads: Int)(action: Int => Unit): Seq[Try[Unit]] = {
    val pool = Executors.newFixedThreadPool(threads)
    implicit val context: ExecutionContext = ExecutionContext.fromExecutor(pool)
    try {
      val start = new CountDownLatch(threads)
      val outcomes = (0 until threads).map { n =>
        Future {
          start.countDown()
          start.await()
          Try(action(n))
        }
      }
      Await.result(Future.sequence(outcomes), 1.minute)
    } finally pool.shutdown()
  }
}
