// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.io.IOException

import scala.concurrent.{Future, Promise}

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.attempts.InlineBudget
import sparkdstl.log.error.{DstlException, FencedException}
import sparkdstl.log.format.{CommittedSegment, FormatSamples}
import sparkdstl.log.request.ScriptedStore
import sparkdstl.log.request.ScriptedStore.{Behaviour, Fail, Hang, LoseReply, Work}
import sparkdstl.log.storage.{Attempt, Payload}
import sparkdstl.log.storage.StorageOperation.{Delete, ListObjects, Put, Replace, TryCreation}
import sparkdstl.log.transport._

class RunCoordinatorSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  private def condition(future: Future[_]): String = failure(future) match {
    case named: DstlException => named.condition
    case other => fail(other)
  }

  private def uploaded(ticket: Long, of: Long): ToDriver = ToDriver.Uploaded(Vector(ticket -> Right(part(of))))

  test("a commit entry carries the winners' segments and names the entry before it")(new RunningFixture {
    commit(0)
    answer(seal(1, 1, 0, inline(1)))
    commit(run, 1, 2, inline(2))
    assert(entry(1).get.index.entries.map(entry => entry.key -> entry.attempt) == Vector(key(1) -> 2L))
    assert(entry(1).get.index.link.get.previous == idOf(0))
    assert(told.toSeq == Seq("1" -> ToExecutor.Drop(1, Vector("0/0"))))
    assert(budget.inUse == 0)
  })

  test("the size of the log counts the entries of all runs and the changes in data files")(new RunFixture {
    def entryBytes: Long =
      result(store.memory.begin(ListObjects(location.commits)).result).map(_.length).sum
    val earlier = begin(otherRun)
    (0L to 2L).foreach(commit(earlier, _))
    result(earlier.close())
    val run = begin()
    assert(run.retainedBytes == entryBytes)
    put(file(1))
    commit(run, 3, 7, SealedPart.Stored(part(1)))
    assert(run.retainedBytes == entryBytes + part(1).length)
    assert(run.barrier.map(_.logBytes).contains(run.retainedBytes))
    answer(run, ToDriver.Release(Vector("0/0" -> 3L)))
    (0L to 1L).foreach(batch => result(run.deleteEntry(batch)))
    timer.advance(2000)
    assert(batches == Seq(2L, 3L))
    assert(run.retainedBytes == entryBytes + part(1).length)
  })

  test("an executor that asks first learns the lengths of all entries, of this run as well")(new RunFixture {
    val earlier = begin(otherRun)
    (0L to 1L).foreach(commit(earlier, _))
    result(earlier.close())
    val run = begin()
    put(file(1))
    commit(run, 2, 7, SealedPart.Stored(part(1)))
    val stored = result(store.memory.begin(ListObjects(location.commits)).result)
    val opened = answer(run, ToDriver.Open).asInstanceOf[FromDriver.Opened]
    assert(opened.entryLengths == stored.map(of => of.path.getName.toLong -> of.length).toMap)
    assert(opened.entryLengths.keySet == Set(0L, 1L, 2L))
  })

  test("a commit waits for pending uploads and requests a flush every second")(new RunningFixture {
    answer(seal(1, 0, 0, SealedPart.Pending(5, 10)))
    val committed = run.commit(0, content, Seq(1))
    timer.advance(2500)
    assert(told.toSeq == Seq.fill(3)("1" -> ToExecutor.Flush))
    assert(!committed.isCompleted && batches.isEmpty)
    assert(answer(uploaded(5, 1)) == FromDriver.Noted)
    result(committed)
    assert(entry(0).get.index.files == Set(file(1)))
    timer.advance(10000)
    assert(told.size == 3)
  })

  test("a batch is committed even if messages to the executors fail")(new RunFixture {
    tell = () => throw new IllegalStateException("no way there")
    val run = begin()
    answer(run, seal(1, 0, 0, inline(1)))
    answer(run, seal(2, 0, 0, SealedPart.Pending(5, 10)))
    val committed = run.commit(0, content, Seq(2))
    timer.advance(1000)
    answer(run, uploaded(5, 1))
    result(committed)
  })

  test("late or lost changes fail the batch without an entry")(new RunningFixture {
    answer(seal(1, 0, 0, SealedPart.Pending(5, 10)))
    val late = run.commit(0, content, Seq(1))
    timer.advance(60000)
    assert(condition(late) == "DSTL_COMMIT_TIMEOUT")
    val next = begin(otherRun)
    answer(next, seal(1, 0, 0, SealedPart.Pending(5, 10)))
    val lost = next.commit(0, content, Seq(1))
    next.executorLost("1", "it is gone")
    assert(condition(lost) == "DSTL_LOST_CHANGES")
    assert(batches.isEmpty)
    assert(condition(next.commit(0, content, Seq(1))) == "DSTL_RUN_ENDED")
  })

  test("a repeated report of an upload deletes nothing, whenever it comes during a commit") {
    var repeat = () => ()
    val budget = new InlineBudget(1000) {
      override def release(bytes: Long): Unit = {
        super.release(bytes)
        repeat()
      }
    }
    new RunFixture(budget = budget) {
      val run = begin()
      answer(run, seal(1, 0, 0, SealedPart.Pending(5, 10)))
      val committed = run.commit(0, content, Seq(1))
      var answers = Vector.empty[FromDriver]
      repeat = () => answers :+= answer(run, uploaded(5, 1))
      answer(run, uploaded(5, 1))
      result(committed)
      assert(answers.nonEmpty && answers.forall(_ == FromDriver.Noted), answers)
    }
  }

  test("a batch whose plan is durable too late fails without a request for its entry")(new RunningFixture {
    private val durable = Promise[Unit]()
    answer(seal(1, 0, 0, inline(1)))
    run.plans.offsets(0, location.offsetsOf(0), content)(durable.future): Unit
    val before = store.count("create")
    val late = run.commit(0, content, Seq(1))
    timer.advance(60000)
    durable.success(())
    assert(condition(late) == "DSTL_WRITE_FAILED" && store.count("create") == before)
  })

  test("a commit with an unknown outcome deletes no file that its entry may name")(new RunningFixture {
    put(file(1))
    answer(seal(1, 0, 0, SealedPart.Stored(part(1))))
    answer(seal(2, 0, 0, inline(1)))
    store.script("create", LoseReply(new IOException("reset")))
    assert(condition(run.commit(0, content, Seq(1))) == "DSTL_COMMIT_UNKNOWN")
    assert(answer(ToDriver.Withdraw(1, 0)) == FromDriver.Withdrawal(true))
    assert(answer(ToDriver.Withdraw(2, 0)) == FromDriver.Withdrawal(false))
    assert(answer(uploaded(5, 1)) == FromDriver.Noted)
    assert(answer(seal(3, 1, 0, inline(1))) == FromDriver.Superseded)
    assert(has(file(1)))
    assert(budget.inUse == 0)
    assert(begin(otherRun).lastCommitted == 0)
  })

  test("a fenced run names the driver that committed its batch and deletes nothing")(new RunningFixture {
    commit(0)
    commit(1)
    writeEntry(2, otherRun, 9, idOf(1), committed(2))
    answer(seal(1, 2, 0, inline(1)))
    val error = failure(run.commit(2, content, Seq(1)))
    assert(error.isInstanceOf[FencedException] && error.getMessage.contains(otherRun.toString))
    // Its newest entry is outdated: a rollback by this run would delete the entry that the other driver has built on.
    assert(!run.isAtWork && condition(run.deleteEntry(1)) == "DSTL_RUN_ENDED")
    answer(ToDriver.Release(Vector("0/0" -> 100L)))
    assert(batches == Seq(0, 1, 2))
    assert(budget.inUse == 0)
  })

  test("a run that is closed during the barrier writes no entry")(new RunningFixture {
    answer(seal(1, 0, 0, SealedPart.Pending(5, 10)))
    val committed = run.commit(0, content, Seq(1))
    result(run.close())
    assert(condition(committed) == "DSTL_RUN_ENDED")
    answer(uploaded(5, 1))
    assert(batches.isEmpty)
    assert(budget.inUse == 0)
  })

  test("closing a run waits for the write of its entry")(new RunningFixture {
    answer(seal(1, 0, 0, inline(1)))
    val hang = new Hang
    store.script("create", hang)
    val committed = run.commit(0, content, Seq(1))
    val closed = run.close()
    assert(!closed.isCompleted)
    hang.release()
    result(committed)
    result(closed)
    assert(batches == Seq(0))
    assert(condition(run.commit(1, content, Seq(1))) == "DSTL_RUN_ENDED")
  })

  test("deleting the newest entry of an active run ends the run")(new RunningFixture {
    (0L to 2L).foreach(commit(_))
    result(run.deleteEntry(2))
    assert(batches == Seq(0, 1) && !run.isAtWork)
    answer(seal(8, 2, 0, inline(1)))
    assert(condition(run.commit(2, content, Seq(8))) == "DSTL_RUN_ENDED")
    val next = begin(otherRun)
    commit(next, 2, attempt = 9)
    assert(entry(2).get.index.link.get.previous == idOf(1))
  })

  test("the newest entry is not deleted while the next one is being written")(new RunningFixture {
    commit(0)
    answer(seal(2, 1, 0, inline(1)))
    val hang = new Hang
    store.script("create", hang)
    val committed = run.commit(1, content, Seq(2))
    val deleted = run.deleteEntry(0)
    assert(batches == Seq(0) && !deleted.isCompleted)
    hang.release()
    result(committed)
    result(deleted)
    assert(batches == Seq(0, 1) && run.isAtWork)
  })

  test("no batch is committed while the newest entry is being deleted")(new RunningFixture {
    (0L to 1L).foreach(commit(_))
    val hang = new Hang
    store.script("delete", hang)
    val deleted = run.deleteEntry(1)
    assert(condition(run.commit(2, content, Seq(8))) == "DSTL_RUN_ENDED")
    hang.release()
    result(deleted)
    assert(batches == Seq(0) && !run.isAtWork)
  })

  test("a run ends even if the deletion of its newest entry fails")(new RunningFixture {
    (0L to 1L).foreach(commit(_))
    store.script("delete", Fail())
    val deleted = run.deleteEntry(1)
    timer.advance(3000)
    assert(failure(deleted).getMessage.contains("injected"))
    assert(condition(run.commit(2, content, Seq(8))) == "DSTL_RUN_ENDED")
  })

  test("a run keeps its newest entry and continues if Spark has begun the batch after it")(new RunningFixture {
    commit(0)
    store.memory.begin(Put(new Path(root, "offsets/1"), Payload(content)))
    result(run.deleteEntry(0))
    commit(1)
    assert(batches == Seq(0, 1))
  })

  test("a run is fenced by an entry that appears after its claim")(new RunFixture {
    val passed = begin(otherRun)
    commit(begin(), 0)
    answer(passed, seal(1, 1, 0, inline(1)))
    val error = failure(passed.commit(1, content, Seq(1)))
    assert(error.isInstanceOf[FencedException] && error.getMessage.contains(s"run ${FormatSamples.someRun} on host"))
    val another = begin(otherRun)
    store.memory.begin(Replace(location.entry(1), Payload(content)))
    answer(another, seal(1, 2, 0, inline(1)))
    assert(failure(another.commit(2, content, Seq(1))).isInstanceOf[FencedException])
    assert(batches == Seq(0, 1))
  })

  test("a sweep that cannot read an entry deletes nothing and is repeated after a delay")(new RunFixture {
    writeEntry(0, otherRun, 1, None, committed(0))
    val run = begin()
    put(file(1, 1, otherRun))
    commit(run, 1)
    assert(!has(file(1, 1, otherRun)), "the sweep works")
    val next = begin(otherRun)
    put(file(2, 1, otherRun))
    store.always("readRange", Fail(new IOException("no")))
    commit(next, 2)
    store.always("readRange", ScriptedStore.Work)
    commit(next, 3)
    assert(has(file(2, 1, otherRun)), "the sweep is not repeated after each batch")
    timer.advance(10000)
    commit(next, 4)
    assert(!has(file(2, 1, otherRun)))
  })

  test("a sweep that finds a damaged entry is repeated only after that entry is deleted")(new RunFixture {
    writeEntry(0, otherRun, 1, None, committed(0))
    writeEntry(1, otherRun, 1, idOf(0), committed(1))
    damage(0)
    val run = begin()
    put(file(1, 1, otherRun))
    (2L to 5L).foreach(commit(run, _))
    timer.advance(3600000)
    val reads = store.count("listRecursively")
    (6L to 9L).foreach(commit(run, _))
    assert(store.count("listRecursively") == reads && has(file(1, 1, otherRun)))
    result(run.deleteEntry(0))
    answer(run, ToDriver.Release(Vector("0/0" -> 3L)))
    timer.advance(10000)
    commit(run, 10)
    assert(!has(file(1, 1, otherRun)))
  })

  test("an entry after a gap links to no entry")(new RunningFixture {
    commit(0)
    commit(5)
    assert(entry(5).get.index.link.get.previous.isEmpty)
  })

  test("an executor discards an upload whose batch was committed without it")(new RunningFixture {
    answer(seal(1, 0, 0, SealedPart.Pending(1, 10)))
    answer(seal(2, 0, 0, SealedPart.Pending(2, 10)))
    val committed = run.commit(0, content, Seq(1))
    answer(uploaded(1, 1))
    result(committed)
    // Its file may hold chunks of the next batch that are not sealed yet.
    put(file(2))
    assert(answer(uploaded(2, 2)) == FromDriver.Unwanted(Vector(2)))
    assert(has(file(2)))
    assert(answer(uploaded(1, 1)) == FromDriver.Noted, "a repeated report of an upload in the commit")
  })

  test("a seal of a withdrawn attempt is not taken, and does not count as refused")(new RunningFixture {
    assert(answer(ToDriver.Withdraw(1, 0)) == FromDriver.Withdrawal(false))
    assert(answer(seal(1, 0, 0, inline(1))).isInstanceOf[FromDriver.Refused])
    assert(metrics.refused.value == 0)
  })

  test("the first commit deletes only unnamed files of lower epochs")(new RunFixture {
    val old = begin(otherRun)
    commit(old, 0, part = SealedPart.Stored(part(1).copy(file = Some(file(1, 1, otherRun)))))
    val run = begin()
    assert(run.epoch == 2)
    val (named, orphan) = (file(1, 1, otherRun), file(2, 1, otherRun))
    val (own, later) = (file(3, 2), file(4, 3, otherRun))
    Seq(named, orphan, own, later).foreach(put)
    val (oldTrial, laterTrial) = (location.trial(1, otherRun), location.trial(3, otherRun))
    Seq(oldTrial, laterTrial).foreach(trial => result(store.memory.begin(TryCreation(trial)).result))
    commit(run, 1)
    assert(Seq(named, orphan, own, later).map(has) == Seq(true, false, true, true))
    val epochs = result(store.memory.begin(ListObjects(location.epochs)).result).map(_.path).toSet
    assert(epochs == Set(location.epoch(1), location.epoch(2), laterTrial), "the run of the later trial has not ended")
  })

  test("the first commit keeps a file of an entry that another run deletes during the sweep")(new RunFixture {
    private val kept = file(1, 1, otherRun)
    private val old = begin(otherRun)
    commit(old, 0, part = SealedPart.Stored(part(1).copy(file = Some(kept))))
    commit(old, 1)
    private val run = begin()
    put(kept)
    // The first read is not one of the sweep. A later run has committed a snapshot with the same file, and deletes
    // the entry that the sweep is about to read.
    store.script(
      "readRange",
      Work,
      new Behaviour {
        override def act[T](work: () => Attempt[T]): Attempt[T] = {
          result(store.memory.begin(Delete(Vector(location.entry(0)))).result)
          val segment = CommittedSegment(key(3), 1, Vector(Right(part(1).copy(file = Some(kept)))))
          writeEntry(3, FormatSamples.someRun, 3, idOf(2), segment): Unit
          work()
        }
      }
    )
    commit(run, 2)
    assert(has(kept))
    assert(batches == Seq(1, 2, 3))
  })

  test("an ask to an ended run is answered as superseded, and an error fails the answer")(new RunningFixture {
    val runs = new CoordinatedRuns
    assert(result(runs.answer("1", run.id, ToDriver.Open)) == FromDriver.NotCoordinated)
    runs.begin(run)
    assert(result(runs.answer("1", run.id, ToDriver.Open)).isInstanceOf[FromDriver.Opened])
    assert(failure(runs.answer("1", run.id, ToDriver.Seal(1, 0, null))).isInstanceOf[NullPointerException])
    val next = begin(otherRun)
    runs.begin(next)
    assert(result(runs.answer("1", run.id, seal(1, 0, 0, inline(1)))) == FromDriver.Superseded)
    runs.end(next.id)
    assert(result(runs.answer("1", next.id, ToDriver.Open)) == FromDriver.Superseded)
  })

  test("a commit succeeds if storage reports a conflict with the run's own entry")(new RunningFixture {
    answer(seal(1, 0, 0, inline(1)))
    // The storage client has repeated its request, and storage refuses the repetition with a conflict.
    store.script("create", LoseReply(new FileAlreadyExistsException("412")))
    result(run.commit(0, content, Seq(1)))
    assert(batches == Seq(0))
  })
}
