package sparkdstl.log.coordinator

import java.io.IOException
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.request.ScriptedStore.{Fail, Hang, Work}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Put
import sparkdstl.log.transport.{SealedPart, ToDriver}

/** What a run deletes of the log, when, and what it leaves. */
class RetentionRoundsSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  /** A run that has committed batches 0 until `count`, each with one store and a data file. */
  private class Fixture(count: Int) extends RunningFixture {
    (0L until count.toLong).foreach(commit(_))

    override def commit(batch: Long): Unit = {
      put(file(batch))
      answer(seal(batch, batch, 0, SealedPart.Stored(part(batch))))
      result(run.commit(batch, content, Seq(batch)))
    }

    def request(batches: Seq[Long]): Unit = batches.foreach(batch => result(run.deleteEntry(batch)))

    def release(version: Long): Unit = answer(ToDriver.Release(Vector("0/0" -> version))): Unit

    def files: Seq[Long] = (0L until count.toLong).filter(batch => has(file(batch)))

    /** Until the next round may begin. */
    def pause(): Unit = timer.advance(2000)
  }

  test("an entry and its data files are deleted once Spark requests it and no store needs them")(new Fixture(5) {
    release(4)
    assert(batches == (0 to 4), "Spark has not asked")
    request(0L to 3L)
    pause()
    assert(batches == Seq(3, 4) && files == Seq(3, 4))
  })

  test("a release of more than a round deletes is deleted all the same")(new Fixture(351) {
    request(0L to 349L)
    release(351)
    assert(batches == Seq(350) && files == Seq(350))
  })

  test("after a round that has left nothing to do the next one waits, however many requests come")(new Fixture(9) {
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

  test("an unreadable entry of another run holds up no other; a damaged one is deleted")(new Fixture(6) {
    result(run.close())
    damage(1)
    val next = begin(otherRun)
    (0L to 3L).foreach(batch => result(next.deleteEntry(batch)))
    store.script("readTail", Fail())
    answer(next, ToDriver.Release(Vector("0/0" -> 4L)))
    assert(batches == Seq(3, 4, 5))
    assert(files == Seq(1, 3, 4, 5), "the files that a damaged entry names are left to a later run")
  })

  test("entries that another run has deleted meanwhile hold up nothing")(new Fixture(5) {
    val next = begin(otherRun)
    release(3)
    request(Seq(0L, 1L))
    pause()
    assert(batches == (2 to 4))
    // This run's Spark lists what is there, and never names the entries that are gone.
    Seq(2L, 3L).foreach(batch => result(next.deleteEntry(batch)))
    answer(next, ToDriver.Release(Vector("0/0" -> 5L)))
    pause()
    assert(next.retainedEntries == 1)
  })

  test("a run that is closed deletes a last time what is not needed, and nothing after that")(new Fixture(5) {
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

  test("a purge beside a commit is no rollback, whichever comes first")(new Fixture(1) {
    // Two threads, as those of a query and of its asynchronous purge; each batch is a chance for them to meet.
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

  test("an entry without segments is deleted on request if no store has anything in the log")(new RunFixture {
    (0L to 2L).foreach(batch => writeEntry(batch, otherRun, 1, None))
    val run = begin()
    result(run.deleteEntry(1))
    assert(batches == Seq(0, 2))
  })

  test("a plain entry of stock Spark is deleted on request")(new RunFixture {
    (0L to 2L).foreach(batch => store.memory.begin(Put(location.entry(batch), Payload(content))))
    val run = begin()
    result(run.deleteEntry(0))
    assert(batches == Seq(1, 2))
  })
}
