package sparkdstl.log.coordinator

import java.io.IOException
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.request.ScriptedStore.{Fail, Hang, Work}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Put, Read, Replace}
import sparkdstl.log.transport.{SealedPart, ToDriver}

/** What a run deletes of the log, when, and what it leaves. */
class RetentionRoundsSuite extends AnyFunSuite {
  import RunFixture._

  /** A run that has committed batches 0 until `count`, each with one store and a data file. */
  private class Fixture(count: Int) {
    val fixture = new RunFixture
    val driver = fixture.begin()
    (0L until count.toLong).foreach(commit(_))

    def commit(batch: Long): Unit = {
      fixture.put(file(batch))
      result(driver.answer("1", seal(batch, batch, 0, SealedPart.Stored(part(batch)))))
      result(driver.commit(batch, content, Seq(batch)))
    }

    def request(batches: Seq[Long]): Unit = batches.foreach(batch => result(driver.deleteEntry(batch)))

    def release(version: Long): Unit = result(driver.answer("1", ToDriver.Release(Vector("0/0" -> version)))): Unit

    def files: Seq[Long] = (0L until count.toLong).filter(batch => fixture.has(file(batch)))

    /** Until the next round may begin. */
    def pause(): Unit = fixture.timer.advance(2000)
  }

  test("an entry is deleted, its data files with it, once Spark has asked and no store needs it") {
    val retained = new Fixture(5)
    import retained._
    release(4)
    assert(fixture.batches == (0 to 4), "Spark has not asked")
    request(0L to 3L)
    pause()
    assert(fixture.batches == Seq(3, 4) && files == Seq(3, 4))
  }

  test("a release of more than a round deletes is deleted all the same") {
    val retained = new Fixture(351)
    import retained._
    request(0L to 349L)
    release(351)
    assert(fixture.batches == Seq(350) && files == Seq(350))
  }

  test("after a round that has left nothing to do the next one waits, however many requests come") {
    val retained = new Fixture(9)
    import retained._
    release(8)
    request(Seq(0L))
    assert(fixture.batches == (1 to 8))
    val lists = fixture.store.count("list")
    request(1L to 5L)
    assert(fixture.store.count("list") == lists && fixture.batches == (1 to 8))
    pause()
    assert(fixture.store.count("list") == lists + 1 && fixture.batches == (6 to 8))
  }

  test("a failed round is repeated only after something has changed") {
    val retained = new Fixture(5)
    import retained._
    request(0L to 3L)
    val before = fixture.store.count("delete")
    fixture.store.always("delete", Fail(new IOException("no")))
    release(4)
    assert(fixture.store.count("delete") == before + 1)
    fixture.timer.advance(600000)
    assert(fixture.store.count("delete") == before + 1 && fixture.metrics.deletionFailed.value == 1)
    assert(fixture.batches == (0 to 4))
    fixture.store.always("delete", Work)
    release(0)
    pause()
    assert(fixture.batches == Seq(3, 4) && files == Seq(3, 4))
  }

  test(
    "an entry of another run that cannot be read is read again, and holds up none of the others; a damaged one is deleted"
  ) {
    val earlier = new Fixture(6)
    result(earlier.driver.close())
    val fixture = earlier.fixture
    val damaged = fixture.store.memory.begin(Read(fixture.location.entry(1), 1 << 20)).result.value.get.get.get
    damaged(damaged.length - 20) = (damaged(damaged.length - 20) ^ 1).toByte
    fixture.store.memory.begin(Replace(fixture.location.entry(1), Payload(damaged)))
    val run = fixture.begin(otherRun)
    (0L to 3L).foreach(batch => result(run.deleteEntry(batch)))
    fixture.store.script("readTail", Fail())
    result(run.answer("1", ToDriver.Release(Vector("0/0" -> 4L))))
    assert(fixture.batches == Seq(3, 4, 5))
    assert(earlier.files == Seq(1, 3, 4, 5), "the files that a damaged entry names are left to a later run")
  }

  test("entries that another run has deleted meanwhile hold up nothing") {
    val earlier = new Fixture(5)
    val run = earlier.fixture.begin(otherRun)
    earlier.release(3)
    earlier.request(Seq(0L, 1L))
    earlier.pause()
    assert(earlier.fixture.batches == (2 to 4))
    // This run's Spark lists what is there, and never names the entries that are gone.
    Seq(2L, 3L).foreach(batch => result(run.deleteEntry(batch)))
    result(run.answer("1", ToDriver.Release(Vector("0/0" -> 5L))))
    earlier.pause()
    assert(run.retainedEntries == 1)
  }

  test("a run that is closed deletes a last time what is not needed, and nothing after that") {
    val retained = new Fixture(5)
    import retained._
    request(0L to 3L)
    val hang = new Hang
    fixture.store.script("delete", hang)
    release(3)
    release(4)
    val closed = driver.close()
    assert(!closed.isCompleted)
    hang.release()
    result(closed)
    assert(fixture.batches == Seq(3, 4), "without a pause")
    release(5)
    pause()
    assert(fixture.batches == Seq(3, 4))
  }

  test("a purge beside a commit is no rollback, whichever comes first") {
    // Two threads, as those of a query and of its asynchronous purge; each batch is a chance for them to meet.
    val retained = new Fixture(1)
    import retained._
    release(1000)
    val batches = 1L to 400L
    val started = new CountDownLatch(1)
    @volatile var problem = Option.empty[Throwable]
    val purger = new Thread(() => {
      started.await(10, TimeUnit.SECONDS)
      try while (driver.isAtWork && driver.lastCommitted < batches.last)
          request(Seq(driver.lastCommitted - 1).filter(_ >= 0))
      catch { case error: Throwable => problem = Some(error) }
    })
    purger.start()
    started.countDown()
    batches.foreach(commit)
    purger.join(10000)
    assert(problem.isEmpty && driver.isAtWork && driver.lastCommitted == batches.last)
  }

  test("an entry without segments is deleted when Spark asks where no store has anything in the log") {
    val fixture = new RunFixture
    (0L to 2L).foreach(batch => fixture.writeEntry(batch, otherRun, 1, None))
    val run = fixture.begin()
    result(run.deleteEntry(1))
    assert(fixture.batches == Seq(0, 2))
  }

  test("a plain entry of stock Spark is deleted likewise") {
    val fixture = new RunFixture
    (0L to 2L).foreach(batch => fixture.store.memory.begin(Put(fixture.location.entry(batch), Payload(content))))
    val run = fixture.begin()
    result(run.deleteEntry(0))
    assert(fixture.batches == Seq(1, 2))
  }
}
