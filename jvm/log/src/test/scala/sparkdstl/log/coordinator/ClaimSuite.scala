package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.view.Claim
import sparkdstl.log.error.FencedException
import sparkdstl.log.format.FormatSamples
import sparkdstl.log.request.ScriptedStore.{Hang, LoseReply}
import sparkdstl.log.storage.StorageOperation.{ListObjects, Read}
import sparkdstl.log.transport.ToDriver

/** A run that was paused, for any time, never commits beside the one that has taken over. */
class ClaimSuite extends AnyFunSuite {
  import RunFixture._

  private def commit(run: RunCoordinator, batch: Long): Unit = {
    result(run.answer("1", seal(batch, batch, 0, inline(1))))
    result(run.commit(batch, content, Seq(batch)))
  }

  private def fenced(run: RunCoordinator, batch: Long): Boolean = {
    result(run.answer("1", seal(batch, batch, 0, inline(1))))
    failure(run.commit(batch, content, Seq(batch))).isInstanceOf[FencedException]
  }

  /** Spark purges all below `batch`, and its retention needs nothing of it. */
  private def purge(fixture: RunFixture, run: RunCoordinator, batch: Long): Unit = {
    fixture.batches.filter(_ < batch).foreach(of => result(run.deleteEntry(of)))
    result(run.answer("1", ToDriver.Release(Vector("0/0" -> (batch + 1)))))
    fixture.timer.advance(3600000)
  }

  private def epochs(fixture: RunFixture): Seq[String] =
    result(fixture.store.memory.begin(ListObjects(fixture.location.epochs)).result).map(_.path.getName).sorted

  test("a claim says what it claims, in words that are read back; others are none") {
    val claim = Claim(otherRun, "host", 7, 3)
    assert(Claim.parse(claim.bytes).contains(claim))
    Seq("", "claim", s"claim $otherRun host", "claim x host 1 1", s"claim $otherRun host 1 x", "other x host 1 1")
      .foreach(text => assert(Claim.parse(text.getBytes("UTF-8")).isEmpty, text))
  }

  test("the first entry of a run outlives retention while the run before it may be paused") {
    val fixture = new RunFixture
    val paused = fixture.begin(otherRun)
    (0L to 2L).foreach(commit(paused, _))
    val next = fixture.begin()
    (3L to 9L).foreach(commit(next, _))
    purge(fixture, next, 9)
    assert(fixture.batches == Seq(3, 9))
    assert(fenced(paused, 3))
  }

  test("a run that was paused between its claim and its first commit finds the entry taken") {
    val fixture = new RunFixture
    val running = fixture.begin(otherRun)
    (0L to 2L).foreach(commit(running, _))
    val paused = fixture.begin()
    (3L to 9L).foreach(commit(running, _))
    purge(fixture, running, 9)
    assert(fixture.batches == Seq(3, 9) && fenced(paused, 3))
  }

  test("a claim that another run's commit has overtaken is not used: the run claims again, for the next batch") {
    val fixture = new RunFixture
    val running = fixture.begin(otherRun)
    commit(running, 0)
    val slow = new Hang
    fixture.store.script("create", slow)
    val begun = fixture.tryToBegin()
    commit(running, 1)
    slow.release()
    assert(result(begun).lastCommitted == 1 && result(begun).epoch == 3)
    val claim = fixture.store.memory.begin(Read(fixture.location.epoch(3), 1000)).result.value.get.get.get
    assert(Claim.parse(claim).exists(_.first == 2))
  }

  test("a run that ended with nothing under way leaves no fence; the one after it deletes its claim") {
    val fixture = new RunFixture
    (0L to 9L).foreach { batch =>
      val run = fixture.begin(if (batch % 2 == 0) FormatSamples.someRun else otherRun)
      commit(run, batch)
      purge(fixture, run, batch)
      result(run.close())
    }
    assert(fixture.batches == Seq(9) && epochs(fixture) == Seq("10", "10.ended"))
  }

  test("one run that may be paused keeps one fence, however many end well after it") {
    val fixture = new RunFixture
    val paused = fixture.begin(otherRun)
    commit(paused, 0)
    (1L to 9L).foreach { batch =>
      val run = fixture.begin()
      commit(run, batch)
      purge(fixture, run, batch)
      result(run.close())
    }
    assert(fixture.batches == Seq(1, 9) && fenced(paused, 1))
  }

  test("a run whose last commit has an unknown outcome does not mark its claim as ended") {
    val fixture = new RunFixture
    val run = fixture.begin()
    result(run.answer("1", seal(1, 0, 0, inline(1))))
    fixture.store.script("create", LoseReply(new java.io.IOException("reset")))
    failure(run.commit(0, content, Seq(1))): Unit
    result(run.close())
    assert(epochs(fixture) == Seq("1"))
    result(fixture.begin(otherRun).close())
    assert(epochs(fixture) == Seq("1", "2", "2.ended"))
  }

  test("claims of more than a hundred runs are not kept") {
    val fixture = new RunFixture
    val runs = (0L to 105L).map { batch =>
      val run = fixture.begin(if (batch % 2 == 0) FormatSamples.someRun else otherRun)
      commit(run, batch)
      run
    }
    // The last sweep has seen its own claim, too.
    assert(epochs(fixture).size == 100)
    purge(fixture, runs.last, 105)
    assert(fixture.batches == (7L to 105L), "the run before the oldest claim is not known any more")
  }
}
