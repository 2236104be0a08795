// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.io.IOException
import java.util.UUID
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.view.{Pin, Pins}
import sparkdstl.log.format.CommitEntry
import sparkdstl.log.request.ScriptedStore.{Fail, Hang, Work}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Delete, Put, Read}
import sparkdstl.log.transport.{SealedPart, ToDriver}

/** The rounds of retention: what a run deletes of the log, and when. */
class RetentionRoundsSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  /** A run that has committed batches 0 until `count`, each with one store and a data file. */
  private class Fixture(count: Int) extends RunningFixture {
    (0L until count.toLong).foreach(commit(_))

    override def commit(batch: Long): Unit = {
      put(file(batch))
      commit(run, batch, batch, SealedPart.Stored(part(batch)))
    }

    def request(batches: Seq[Long]): Unit = batches.foreach(batch => result(run.deleteEntry(batch)))

    def release(version: Long): Unit = answer(ToDriver.Release(Vector("0/0" -> version))): Unit

    def files: Seq[Long] = (0L until count.toLong).filter(batch => has(file(batch)))

    /** Creates a pin, as a reader does, and returns its path. */
    def pin(batch: Long, seconds: Long): Path = {
      val path = new Path(location.epochs, s"$batch-$seconds-$otherRun.pin")
      store.memory.begin(Put(path, Payload("reader\n".getBytes("UTF-8"))))
      path
    }

    def isThere(path: Path): Boolean = store.memory.begin(Read(path, 1000)).result.value.get.isSuccess

    /** Moves time on until the next round may begin. */
    def pause(): Unit = timer.advance(2000)
  }

  test("with the log off entries have the guard until no store needs the log, over restarts")(new RunFixture {
    def hasGuard(batch: Long) = CommitEntry.needsLog(entry(batch).flatMap(_.content).get)
    def plain(run: RunCoordinator, batch: Long): Boolean = {
      result(run.commit(batch, RunFixture.content, Nil))
      hasGuard(batch)
    }
    def restarted(before: RunCoordinator): RunCoordinator = {
      result(before.close())
      begin(UUID.randomUUID())
    }
    val log = begin()
    (0L to 1L).foreach(commit(log, _))
    val off = restarted(log)
    assert(plain(off, 2))
    val again = restarted(off)
    assert(plain(again, 3), "of the entries before the start it knows only the newest")
    (0L to 1L).foreach(batch => result(again.deleteEntry(batch)))
    timer.advance(2000)
    assert(plain(again, 4), "no store has reported")
    answer(again, ToDriver.Release(Vector("0/0" -> 3L)))
    assert(!plain(again, 5))
    val later = restarted(again)
    assert(!plain(later, 6))
    commit(later, 7)
    assert(hasGuard(7) && plain(later, 8))
  })

  test("an entry and its data files are deleted once Spark has purged it and no store needs it")(new Fixture(5) {
    release(4)
    assert(batches == (0 to 4), "Spark has not purged them")
    request(0L to 3L)
    pause()
    assert(batches == Seq(3, 4) && files == Seq(3, 4))
  })

  test("a backlog larger than one round is deleted")(new Fixture(351) {
    request(0L to 349L)
    release(351)
    assert(batches == Seq(350) && files == Seq(350))
  })

  test("a round deletes a thousand data files, and the rounds at the end of a run delete all")(new Fixture(0) {
    val many = 1000L until 3500L
    many.foreach(of => put(file(of)))
    answer(seal(0, 0, 0, many.map(of => SealedPart.Stored(part(of))): _*))
    result(run.commit(0, content, Seq(0)))
    (1L to 4L).foreach(commit)
    release(4)
    val lists = store.count("list")
    store.script("delete", Fail(new IOException("no")))
    request(Seq(0L))
    assert(batches.contains(0L))
    val closed = run.close()
    timer.advance(3000)
    result(closed)
    assert(batches == (1 to 4) && !many.exists(of => has(file(of))))
    assert(store.count("list") - lists == 1 + 3, "one round without an answer, and three at the end")
  })

  test("the round after a complete one is delayed for any number of purge requests")(new Fixture(9) {
    release(8)
    request(Seq(0L))
    assert(batches == (1 to 8))
    val lists = store.count("list")
    request(1L to 5L)
    assert(store.count("list") == lists && batches == (1 to 8))
    pause()
    assert(store.count("list") == lists + 1 && batches == (6 to 8))
  })

  test("a failed round is repeated only after something has changed")(new Fixture(5) {
    request(0L to 3L)
    val before = store.count("delete")
    store.always("delete", Fail(new IOException("no")))
    release(4)
    assert(store.count("delete") == before + 1)
    timer.advance(600000)
    assert(store.count("delete") == before + 1 && metrics.deletionFailed.value == 1)
    assert(batches == (0 to 4))
    store.always("delete", Work)
    release(0)
    pause()
    assert(batches == Seq(3, 4) && files == Seq(3, 4))
  })

  test("rounds that fail in a row, as without the permission to delete, become rare")(new Fixture(5) {
    request(0L to 3L)
    store.always("delete", Fail(new IOException("no")))
    // Each change requests a round, as each commit does.
    (1L to 1800L).foreach { change =>
      release(change)
      pause()
    }
    assert(metrics.deletionFailed.value == 14)
    store.always("delete", Work)
    timer.advance(600000)
    assert(batches == Seq(4))
  })

  test("retention skips an unreadable entry of another run and deletes a damaged one")(new Fixture(6) {
    result(run.close())
    damage(1)
    val next = begin(otherRun)
    (0L to 3L).foreach(batch => result(next.deleteEntry(batch)))
    // The first read is that of the oldest retained entry, for the stores that only earlier batches have.
    store.script("readTail", Work, Fail())
    answer(next, ToDriver.Release(Vector("0/0" -> 4L)))
    assert(batches == Seq(3, 4, 5))
    assert(files == Seq(1, 3, 4, 5), "the files that a damaged entry names are left to a later run")
  })

  test("entries that another run has deleted do not block retention")(new Fixture(5) {
    val next = begin(otherRun)
    release(3)
    request(Seq(0L, 1L))
    pause()
    assert(batches == (2 to 4))
    // Spark purges the entries that it lists, so it never requests the missing ones.
    Seq(2L, 3L).foreach(batch => result(next.deleteEntry(batch)))
    answer(next, ToDriver.Release(Vector("0/0" -> 5L)))
    pause()
    assert(next.retainedEntries == 1)
  })

  test("a closing run deletes unneeded entries a last time, and a closed one deletes nothing")(new Fixture(5) {
    request(0L to 3L)
    val hang = new Hang
    store.script("delete", hang)
    release(3)
    release(4)
    val closed = run.close()
    assert(!closed.isCompleted)
    hang.release()
    result(closed)
    assert(batches == Seq(3, 4), "without a pause")
    release(5)
    pause()
    assert(batches == Seq(3, 4))
  })

  test("a round that waits for the end of a pause is done as the run ends")(new Fixture(5) {
    release(4)
    request(Seq(0L))
    assert(batches == (1 to 4))
    request(Seq(1L, 2L))
    assert(batches == (1 to 4), "no round begins in the pause")
    result(run.close())
    assert(batches == (3 to 4))
  })

  test("a pin keeps what its batch needs until it is deleted")(new Fixture(6) {
    val pinned = pin(2, 3600)
    release(6)
    request(0L to 4L)
    pause()
    assert(batches == (2 to 5) && files == (2 to 5) && run.entriesKeptByPins == 3)
    store.memory.begin(Delete(Seq(pinned)))
    commit(6)
    pause()
    assert(batches == Seq(5, 6) && run.entriesKeptByPins == 0)
  })

  test("a pin ends after its time, and is deleted")(new Fixture(6) {
    val pinned = pin(2, 60)
    release(6)
    request(0L to 4L)
    pause()
    assert(batches == (2 to 5))
    timer.advance(57000)
    commit(6)
    assert(batches == (2 to 6) && isThere(pinned))
    timer.advance(3000)
    commit(7)
    assert(batches == (5 to 7) && !isThere(pinned))
  })

  test("no pin lasts longer than the maximum, whatever its name has")(new Fixture(6) {
    pin(2, 999999999999999999L): Unit
    release(6)
    request(0L to 4L)
    timer.advance(options.pinsMaxDurationMs - 1)
    commit(6)
    assert(batches == (2 to 6))
    timer.advance(2001)
    commit(7)
    assert(batches == (5 to 7))
  })

  test("the time of a pin before the run counts, by the clock of storage") {
    val pins = Pins().listed(Seq(Pin("a", 1, 5000, usedMillis = 2000), Pin("b", 2, 5000, usedMillis = 6000)), 4000, 0)
    assert(pins.batches(0) == Set(1) && pins.ended(0) == Vector("b"))
    val later = pins.listed(pins.endNanos.keys.toSeq, 4000, 1000000000)
    assert(later.batches(1999999999) == Set(1) && later.batches(2000000000) == Set(), "listed again, it ends as before")
  }

  test("a round deletes nothing that Spark purges after the round has listed the pins")(new Fixture(6) {
    release(6)
    val listed = new Hang(answersLate = true)
    store.script("list", listed)
    request(Seq(0L))
    pin(1, 3600): Unit
    request(1L to 4L)
    listed.release()
    assert(batches == (1 to 5))
    pause()
    assert(batches == (1 to 5))
  })

  test("a purge concurrent with a commit is no rollback")(new Fixture(1) {
    // One thread commits like a query, the other purges like Spark's asynchronous purge; each batch may race.
    release(1000)
    val numbers = 1L to 400L
    val started = new CountDownLatch(1)
    @volatile var problem = Option.empty[Throwable]
    val purger = new Thread(() => {
      started.await(10, TimeUnit.SECONDS)
      try while (run.isAtWork && run.lastCommitted < numbers.last)
          request(Seq(run.lastCommitted - 1).filter(_ >= 0))
      catch { case error: Throwable => problem = Some(error) }
    })
    purger.start()
    started.countDown()
    numbers.foreach(commit)
    purger.join(10000)
    assert(problem.isEmpty && run.isAtWork && run.lastCommitted == numbers.last)
  })
}
