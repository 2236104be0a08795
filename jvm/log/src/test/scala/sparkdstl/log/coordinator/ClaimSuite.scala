// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.view.Claim
import sparkdstl.log.error.FencedException
import sparkdstl.log.format.FormatSamples
import sparkdstl.log.request.ScriptedStore.{Hang, LoseReply}
import sparkdstl.log.storage.StorageOperation.{Delete, ListObjects, ListRecursively, Read}
import sparkdstl.log.transport.ToDriver

/** A paused run never commits after another run has replaced it, however long the pause is. */
class ClaimSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  private class Fixture extends RunFixture {
    def fenced(run: RunCoordinator, batch: Long): Boolean = {
      answer(run, seal(batch, batch, 0, inline(1))): Unit
      failure(run.commit(batch, content, Seq(batch))).isInstanceOf[FencedException]
    }

    /** Spark purges all entries below `batch`, and no store needs them. */
    def purge(run: RunCoordinator, batch: Long): Unit = {
      batches.filter(_ < batch).foreach(of => result(run.deleteEntry(of)))
      answer(run, ToDriver.Release(Vector("0/0" -> (batch + 1)))): Unit
      timer.advance(3600000)
    }

    /** A user deletes all files. */
    def deleteCheckpoint(): Unit =
      result(store.memory.begin(Delete(
        result(store.memory.begin(ListRecursively(location.root)).result).map(_.path)
      )).result)

    def epochs: Seq[String] =
      result(store.memory.begin(ListObjects(location.epochs)).result).map(_.path.getName).sorted
  }

  test("a claim is parsed from its own text, and other text is refused") {
    val claim = Claim(otherRun, "host", 7, 3)
    assert(Claim.parse(claim.bytes).contains(claim))
    Seq("", "claim", s"claim $otherRun host", "claim x host 1 1", s"claim $otherRun host 1 x", "other x host 1 1")
      .foreach(text => assert(Claim.parse(text.getBytes("UTF-8")).isEmpty, text))
  }

  test("retention keeps the first entry of a run while the run before it may be paused")(new Fixture {
    val paused = begin(otherRun)
    (0L to 2L).foreach(commit(paused, _))
    val next = begin()
    (3L to 9L).foreach(commit(next, _))
    purge(next, 9)
    assert(batches == Seq(3, 9))
    assert(fenced(paused, 3))
  })

  test("a run that is paused between its claim and its first commit is fenced")(new Fixture {
    val running = begin(otherRun)
    (0L to 2L).foreach(commit(running, _))
    val paused = begin()
    (3L to 9L).foreach(commit(running, _))
    purge(running, 9)
    assert(batches == Seq(3, 9) && fenced(paused, 3))
  })

  test("a run claims again when another run commits during its claim")(new Fixture {
    val running = begin(otherRun)
    commit(running, 0)
    val slow = new Hang
    store.script("create", slow)
    val begun = tryToBegin()
    commit(running, 1)
    slow.release()
    assert(result(begun).lastCommitted == 1 && result(begun).epoch == 3)
    val claim = store.memory.begin(Read(location.epoch(3), 1000)).result.value.get.get.get
    assert(Claim.parse(claim).exists(_.first == 2))
  })

  test("a run that ended cleanly leaves no fence, and the next run deletes its claim")(new Fixture {
    (0L to 9L).foreach { batch =>
      val run = begin(if (batch % 2 == 0) FormatSamples.someRun else otherRun)
      commit(run, batch)
      purge(run, batch)
      result(run.close())
    }
    assert(batches == Seq(9) && epochs == Seq("10", "10.ended"))
  })

  test("a run that may be paused needs one fence, however many runs end cleanly after it")(new Fixture {
    val paused = begin(otherRun)
    commit(paused, 0)
    (1L to 9L).foreach { batch =>
      val run = begin()
      commit(run, batch)
      purge(run, batch)
      result(run.close())
    }
    assert(batches == Seq(1, 9) && fenced(paused, 1))
  })

  test("a run whose last commit has an unknown outcome does not mark its claim as ended")(new Fixture {
    val run = begin()
    result(run.answer("1", seal(1, 0, 0, inline(1))))
    store.script("create", LoseReply(new java.io.IOException("reset")))
    failure(run.commit(0, content, Seq(1))): Unit
    result(run.close())
    assert(epochs == Seq("1"))
    val closed = begin(otherRun).close()
    assert(epochs == Seq("1", "2"), "the entry may still appear")
    timer.advance(3000)
    result(closed)
    assert(epochs == Seq("1", "2", "2.ended"))
  })

  test("a run marks its claim as ended once its writes are over, for which it waits a limited time")(new Fixture {
    for ((run, epoch, isInTime) <- Seq((FormatSamples.someRun, "1", true), (otherRun, "2", false))) {
      val ending = begin(run)
      val slow = new Hang
      store.script("create", slow)
      storage.create(location.file(s"slow-$epoch"), content): Unit
      val closed = ending.close()
      assert(!closed.isCompleted && !epochs.contains(s"$epoch.ended"))
      if (isInTime) slow.release() else timer.advance(30000)
      result(closed)
      assert(epochs.contains(s"$epoch.ended") == isInTime)
      result(ending.close())
      slow.release()
    }
    assert(!epochs.contains("2.ended"))
  })

  test("a run whose checkpoint was deleted or replaced since leaves no mark of its end")(new Fixture {
    val deleted = begin()
    commit(deleted, 0)
    deleteCheckpoint()
    result(deleted.close())
    assert(epochs == Nil)
    val replaced = begin()
    deleteCheckpoint()
    val running = begin(otherRun)
    result(replaced.close())
    assert(running.epoch == 1 && epochs == Seq("1"), "the mark would be that of the running query")
    result(running.close())
    assert(epochs == Seq("1", "1.ended"))
  })

  test("a run marks its claim as ended after its sweep of what earlier runs have left")(new Fixture {
    commit(begin(otherRun), 0)
    val run = begin()
    val slow = new Hang
    store.script("list", slow)
    commit(run, 1)
    val closed = run.close()
    assert(!closed.isCompleted && !epochs.contains("2.ended"))
    slow.release()
    result(closed)
    assert(epochs.contains("2.ended"))
  })

  test("a run that ends waits for its rollback, after which it marks its end")(new Fixture {
    val run = begin()
    (0L to 1L).foreach(commit(run, _))
    val listing = new Hang
    store.script("list", listing)
    val deleted = run.deleteEntry(1)
    val closed = run.close()
    assert(!closed.isCompleted && batches == Seq(0, 1))
    listing.release()
    result(deleted)
    result(closed)
    assert(batches == Seq(0) && epochs.contains("1.ended"))
  })

  test("the claims of at most a hundred runs are kept")(new Fixture {
    val runs = (0L to 105L).map { batch =>
      val run = begin(if (batch % 2 == 0) FormatSamples.someRun else otherRun)
      commit(run, batch)
      run
    }
    // The last sweep counts its own claim too.
    assert(epochs.size == 100)
    purge(runs.last, 105)
    assert(batches == (7L to 105L), "the claim of the run before the oldest claim is deleted")
  })
}
