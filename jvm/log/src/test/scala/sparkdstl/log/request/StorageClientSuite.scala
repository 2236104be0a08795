// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.IOException

import scala.concurrent.{Future, Promise}

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.request.ScriptedStore.{Fail, Hang, LoseReply, Work}
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.{ObjectTail, Payload}
import sparkdstl.log.storage.StorageOperation._

class StorageClientSuite extends AnyFunSuite {
  private val path = new Path("/commits/9")
  private val ours = Payload("ours".getBytes)
  private val taken = new FileAlreadyExistsException("412: already exists")

  private final class Conflict extends IOException("a conflicting operation is in progress") {
    def statusCode(): Int = 409
  }

  private class Fixture(atomic: Boolean = true) {
    val timer = new ManualTimer
    val store = new ScriptedStore(atomic)
    val storage = new StorageClient(store, new Requests(RequestFixture.hedged, TestRuntime(timer)))

    def create(timeoutMillis: Long = 600000): Future[Outcome[Creation]] =
      storage.create(path, ours, timeoutMillis)(tail => new String(tail.bytes) == "ours")

    def put(text: String): Unit = store.memory.begin(Put(path, Payload(text.getBytes))): Unit

    def putMany(count: Int): Seq[Path] = (1 to count).map { number =>
      val to = new Path(s"/many/$number")
      store.memory.begin(Put(to, ours)): Unit
      to
    }

    /** The remaining objects of [[putMany]]. */
    def left: Seq[String] =
      store.memory.begin(ListObjects(new Path("/many"))).result.value.get.get.map(_.path.getName).sorted

    def content: String = new String(store.memory.begin(Read(path, 1000)).result.value.get.get.get)
  }

  private def outcome[T](future: Future[Outcome[T]]): Outcome[T] =
    future.value.getOrElse(fail("no outcome yet")).get

  private def unknown(future: Future[Outcome[_]]): Throwable = future.value.map(_.get) match {
    case Some(Outcome.Unknown(cause)) => cause
    case other => fail(s"not unknown: $other")
  }

  // Exclusive creation.

  test("a conflict of a later attempt is a success if as many bytes as the caller compares are the creation's own") {
    for (length <- Seq(0, 200000)) new Fixture {
      store.script("create", LoseReply())
      val large = Payload(Array.fill(200000)(7.toByte))
      val created = storage.create(path, large, 600000, length)(_.isWhole)
      timer.advance(1000)
      assert(outcome(created) match {
        case Outcome.Done(Creation.Ours) => length == 200000
        case Outcome.Done(Creation.Taken(found)) => length == 0 && found.bytes.length == 64 * 1024
        case _ => false
      })
    }
  }

  test("a creation takes one request")(new Fixture {
    assert(outcome(create()) == Outcome.Done(Creation.Ours))
    assert(store.asked == Seq("create") && timer.pending == 0)
  })

  test("a creation that conflicts with another writer returns that writer's object")(new Fixture {
    put("theirs")
    outcome(create()) match {
      case Outcome.Done(Creation.Taken(ObjectTail(bytes, length))) =>
        assert(new String(bytes) == "theirs" && length == 6)
      case other => fail(other.toString)
    }
    assert(content == "theirs")
  })

  test("an unanswered attempt does not replace another writer's object")(new Fixture {
    val unanswered = new Hang
    store.script("create", unanswered)
    val creation = create()
    put("theirs")
    timer.advance(1000)
    assert(outcome(creation).isInstanceOf[Outcome.Done[_]] && unanswered.cancelled)
    unanswered.release()
    assert(content == "theirs")
  })

  test("a first conflict with its own content is a success; its read-back is retried and hedged")(new Fixture {
    store.script("create", LoseReply(taken))
    store.script("readTail", Fail(), Fail(), new Hang)
    val creation = create()
    timer.advance(500)
    timer.advance(1000)
    assert(!creation.isCompleted)
    timer.advance(1000)
    assert(outcome(creation) == Outcome.Done(Creation.Ours))
    assert(store.count("create") == 1 && store.count("readTail") == 4)
  })

  test("a creation is unknown with the root cause if its read-back fails until the deadline")(new Fixture {
    store.script("create", LoseReply(taken))
    store.always("readTail", Fail(new IOException("read", new IOException("no route to host"))))
    val creation = create(timeoutMillis = 5000)
    timer.advance(5000)
    assert(unknown(creation).getMessage.contains("no route to host"))
    assert(timer.pending == 0)
  })

  test("a creation is unknown at once if its read-back is refused")(new Fixture {
    store.script("create", LoseReply(taken))
    store.script("readTail", Fail(new AccessControlException("denied")))
    assert(unknown(create()).getMessage.contains("denied"))
  })

  test("a creation is retried if the conflicting object is gone") {
    for (conflict <- Seq(taken, new Conflict)) {
      val f = new Fixture
      f.store.script("create", Fail(conflict))
      val creation = f.create()
      assert(!creation.isCompleted)
      f.timer.advance(500)
      assert(outcome(creation) == Outcome.Done(Creation.Ours) && f.content == "ours")
    }
  }

  test("a creation is unknown if it is refused after an attempt that may have succeeded")(new Fixture {
    store.script("create", Fail(taken), Fail(new AccessControlException("denied")))
    val creation = create()
    timer.advance(500)
    assert(unknown(creation).getMessage.contains("denied"))
  })

  test("a creation is unknown at the deadline if each conflicting object is gone on read-back")(new Fixture {
    store.always("create", Fail(taken))
    val creation = create(timeoutMillis = 3000)
    timer.advance(3000)
    assert(unknown(creation).getMessage.contains("412"))
  })

  test("a creation is unknown if the comparison of its content throws")(new Fixture {
    put("theirs")
    val creation = storage.create(path, ours, 1000)(_ => throw new IllegalStateException("judge"))
    assert(unknown(creation).getMessage == "judge")
  })

  // Other writes.

  test("each trial of exclusive creation has its own name, and all are deleted afterwards")(new Fixture {
    store.script("createsExclusively", LoseReply())
    val outcomes = storage.createsExclusively(id => new Path(s"/epochs/1-$id.trial"), 600000)
    timer.advance(2000)
    assert(outcome(outcomes) == Outcome.Done(true))
    assert(store.count("createsExclusively") == 2 && store.count("delete") == 1)
    assert(store.memory.begin(ListObjects(new Path("/epochs"))).result.value.get.get.isEmpty)
  })

  test("the object of a trial that ends after the answer is deleted")(new Fixture {
    val late = new Hang
    store.script("createsExclusively", late)
    val outcomes = storage.createsExclusively(id => new Path(s"/epochs/1-$id.trial"), 600000)
    timer.advance(2000)
    assert(outcome(outcomes) == Outcome.Done(true) && store.count("createsExclusively") == 2)
    late.release()
    assert(store.memory.begin(ListObjects(new Path("/epochs"))).result.value.get.get.isEmpty)
  })

  test("a put of an existing object succeeds")(new Fixture {
    store.script("put", Fail(taken))
    assert(outcome(storage.run(Put(path, ours), 1000)) == Outcome.Done(()))
  })

  test("a replacement is hedged only if storage replaces atomically") {
    for (atomic <- Seq(true, false)) {
      val f = new Fixture(atomic)
      val unanswered = new Hang
      f.store.script("replace", unanswered)
      val replacement = f.storage.run(Replace(path, ours), 5000)
      f.timer.advance(1000)
      assert(replacement.isCompleted == atomic)
      assert(f.store.count("replace") == (if (atomic) 2 else 1))
      f.timer.advance(4000)
      assert(f.store.count("replace") == (if (atomic) 2 else 1))
    }
  }

  test("each page of a deletion is retried separately")(new Fixture {
    val paths = putMany(6)
    store.deletionPageSize = 1
    val slow = new Hang
    store.script("delete", slow)
    val deletion = storage.delete(paths, 60000)
    // All but the unanswered one are deleted meanwhile.
    assert(store.count("delete") == 6 && left.size == 1)
    timer.advance(2000)
    assert(outcome(deletion) == Outcome.Done(()) && store.count("delete") == 7)
    assert(outcome(storage.delete(Nil, 1000)) == Outcome.Done(()))
  })

  test("a deletion tries all pages, and an unknown page outweighs a failed one")(new Fixture {
    val paths = putMany(3)
    store.deletionPageSize = 1
    store.always("delete", new Hang)
    store.script("delete", Fail(new AccessControlException("no")), Work)
    val deletion = storage.delete(paths, 1000)
    timer.advance(5000)
    assert(unknown(deletion).getMessage.contains("/many/3"))
    assert(left == Seq("1", "3"))
  })

  test("a request begins after its pause with its full timeout, and fails with a failed pause")(new Fixture {
    val pause = Promise[Unit]()
    val paused = storage.pausing { case _: Create => pause.future; case _ => Future.failed(new IOException("no")) }
    val creation = paused.create(path, ours, 1000)(_ => true)
    timer.advance(5000)
    assert(store.asked.isEmpty)
    pause.success(())
    assert(outcome(creation) == Outcome.Done(Creation.Ours))
    assert(outcome(paused.run(Read(path, 10), 1000)).isInstanceOf[Outcome.Failed])
  })

  // Reads.

  test("the absence of an object is an answer and is not retried")(new Fixture {
    assert(outcome(storage.run(Read(path, 10), 1000)) == Outcome.Done(None))
    assert(outcome(storage.run(ReadTail(path, 10), 1000)) == Outcome.Done(None))
    assert(outcome(storage.run(ReadRange(path, 0, 10), 1000)) == Outcome.Done(None))
    assert(store.asked == Seq("read", "readTail", "readRange"))
  })

  test("a read of an object with an unexpected length fails at once")(new Fixture {
    put("123456")
    for (read <- Seq(storage.run(Read(path, 5), 1000), storage.run(ReadRange(path, 3, 4), 1000)))
      assert(outcome(read).isInstanceOf[Outcome.Failed])
    assert(timer.pending == 0)
  })
}
