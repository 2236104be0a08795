package sparkdstl.log.storage

import java.io.{EOFException, FileNotFoundException, IOException}
import java.util.concurrent.{CountDownLatch, Executors}

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.DurationInt
import scala.util.Try

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.scalatest.funsuite.AnyFunSuite

/** What holds of every [[LogStorage]]. */
trait LogStorageBehaviour { this: AnyFunSuite =>

  protected def bytes(text: String): Array[Byte] = text.getBytes("UTF-8")

  /**
   * @param withStorage
   *   runs a test with an empty storage and the base of its paths
   */
  protected def logStorage(name: String)(withStorage: ((LogStorage, Path) => Any) => Any): Unit = {
    def holds(what: String)(check: (LogStorage, Path) => Any): Unit = test(s"$name: $what")(withStorage(check))

    holds("what was put is read, whole and in ranges") { (storage, base) =>
      val path = new Path(base, "a/b/c.log")
      storage.put(path, bytes("0123456789"))
      assert(storage.read(path, 10) sameElements bytes("0123456789"))
      assert(storage.readRange(path, 3, 4) sameElements bytes("3456"))
      assert(storage.readRange(path, 0, 10) sameElements bytes("0123456789"))
      assert(storage.length(path) == 10)
      assert(storage.exists(path))
    }

    holds("an empty object is an object") { (storage, base) =>
      storage.put(new Path(base, "empty"), Array.emptyByteArray)
      assert(storage.read(new Path(base, "empty"), 0).isEmpty)
    }

    holds("put replaces, longer by shorter too") { (storage, base) =>
      val path = new Path(base, "x")
      storage.put(path, bytes("something long"))
      storage.put(path, bytes("short"))
      assert(storage.read(path, 100) sameElements bytes("short"))
    }

    holds("an exclusive put fails when something is there, and leaves it") { (storage, base) =>
      val path = new Path(base, "batches/1.log")
      storage.putIfAbsent(path, bytes("first"))
      val error = intercept[FileAlreadyExistsException](storage.putIfAbsent(path, bytes("second")))
      assert(error.getMessage.contains("1.log"))
      assert(storage.read(path, 100) sameElements bytes("first"))
      assert(storage.list(path.getParent).map(_.path.getName) == Seq("1.log"))
      assert(storage.listUnpublished(base).isEmpty)
    }

    holds("of many concurrent exclusive puts one succeeds, and its content stays") { (storage, base) =>
      for (round <- 1 to 20) {
        val path = new Path(base, s"$round.log")
        val outcomes = concurrently(8)(n => storage.putIfAbsent(path, bytes(s"writer $n")))
        val winners = outcomes.zipWithIndex.collect { case (outcome, n) if outcome.isSuccess => n }
        assert(winners.size == 1, outcomes)
        assert(outcomes.flatMap(_.failed.toOption).forall(_.isInstanceOf[FileAlreadyExistsException]), outcomes)
        assert(storage.read(path, 100) sameElements bytes(s"writer ${winners.head}"))
      }
      assert(storage.listUnpublished(base).isEmpty)
    }

    holds("concurrent puts of the same content all succeed") { (storage, base) =>
      val path = new Path(base, "same")
      assert(concurrently(8)(_ => storage.put(path, bytes("same"))).forall(_.isSuccess))
      assert(storage.read(path, 100) sameElements bytes("same"))
    }

    holds("reading what is not there fails with FileNotFoundException") { (storage, base) =>
      val path = new Path(base, "missing")
      intercept[FileNotFoundException](storage.read(path, 10))
      intercept[FileNotFoundException](storage.readRange(path, 0, 1))
      intercept[FileNotFoundException](storage.length(path))
      assert(!storage.exists(path))
    }

    holds("an object longer than allowed is refused, with both lengths") { (storage, base) =>
      storage.put(new Path(base, "big"), new Array[Byte](11))
      val message = intercept[IOException](storage.read(new Path(base, "big"), 10)).getMessage
      assert(message.contains("11") && message.contains("10") && message.contains("big"))
    }

    holds("a range past the end fails with EOFException naming path and offset") { (storage, base) =>
      storage.put(new Path(base, "object"), bytes("0123456789"))
      val error = intercept[EOFException](storage.readRange(new Path(base, "object"), 7, 4))
      assert(error.getMessage.contains("object") && error.getMessage.contains("7"))
      intercept[EOFException](storage.readRange(new Path(base, "object"), 70, 4))
    }

    holds("a list shows the objects of one directory") { (storage, base) =>
      Seq("d/1", "d/2", "d/below/3", "other/4").foreach(name => storage.put(new Path(base, name), bytes(name)))
      val listed = storage.list(new Path(base, "d"))
      assert(listed.map(_.path.getName).toSet == Set("1", "2"))
      assert(listed.forall(_.length == 3))
      assert(listed.forall(o => storage.exists(o.path)))
    }

    holds("a recursive list shows what is below too") { (storage, base) =>
      Seq("d/1", "d/below/2", "other/3").foreach(name => storage.put(new Path(base, name), bytes(name)))
      assert(storage.listRecursively(new Path(base, "d")).map(_.path.getName).toSet == Set("1", "2"))
    }

    holds("a missing directory lists as empty") { (storage, base) =>
      assert(storage.list(new Path(base, "nowhere")).isEmpty)
      assert(storage.listRecursively(new Path(base, "nowhere")).isEmpty)
      assert(storage.listUnpublished(new Path(base, "nowhere")).isEmpty)
    }

    holds("delete takes many, and missing ones are fine") { (storage, base) =>
      Seq("1", "2", "3").foreach(name => storage.put(new Path(base, name), bytes(name)))
      storage.delete(Seq("1", "missing", "3").map(new Path(base, _)))
      assert(storage.list(base).map(_.path.getName) == Seq("2"))
      storage.delete(Nil)
    }
  }

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
