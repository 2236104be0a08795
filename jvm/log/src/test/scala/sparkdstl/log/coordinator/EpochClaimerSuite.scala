// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.concurrent.Future

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.error.FencedException
import sparkdstl.log.format.FormatSamples
import sparkdstl.log.request.ScriptedStore.{Fail, Hang, Work}
import sparkdstl.log.storage._
import sparkdstl.log.storage.StorageOperation._
import sparkdstl.log.transport.{FromDriver, ToDriver}

class EpochClaimerSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  /** `inner` whose creations replace existing objects. */
  private final class NotExclusive(inner: ObjectStore) extends ObjectStore {
    override def replacesAtomically: Boolean = inner.replacesAtomically
    override def deletionPageSize: Int = inner.deletionPageSize

    override def begin[A](operation: StorageOperation[A]): Attempt[A] = operation match {
      case Create(path, content) =>
        inner.begin(Replace(path, content))
        new Attempt(Future.successful(None))
      case TryCreation(_) => new Attempt(Future.successful(false))
      case other => inner.begin(other)
    }
  }

  private class NotExclusiveFixture extends RunFixture(seenStore = new NotExclusive(_))

  test("each run claims an epoch above all claimed epochs and above the newest entry's")(new RunFixture {
    assert(begin().epoch == 1)
    assert(begin(otherRun).epoch == 2)
    writeEntry(4, otherRun, 7, None, committed(4))
    val run = begin()
    assert(run.epoch == 8 && run.lastCommitted == 4)
  })

  test("of two runs that claim at once, the second gets the next epoch")(new RunFixture {
    val slow = new Hang
    store.script("create", slow)
    val first = tryToBegin()
    assert(begin(otherRun).epoch == 1)
    slow.release()
    assert(result(first).epoch == 2)
  })

  test("a run whose claim or listing fails does not begin")(new RunFixture {
    store.script("create", Fail())
    assert(failure(tryToBegin()).getMessage.contains("DSTL_UNUSABLE_CHECKPOINT"))
    store.script("list", Fail())
    assert(failure(tryToBegin()).getMessage.contains("DSTL_READ_FAILED"))
  })

  test("a start that fails after its claim marks it as ended")(new RunFixture {
    store.script("list", Work, Work, Fail())
    assert(failure(tryToBegin()).getMessage.contains("DSTL_READ_FAILED"))
    val names = result(store.memory.begin(ListObjects(location.epochs)).result).map(_.path.getName)
    assert(names.contains("1") && names.contains("1.ended"), names)
  })

  test("without exclusive creation, at most a hundred claims are read and fence entries")(new NotExclusiveFixture {
    (0L to 149L).foreach(batch => commit(begin(if (batch % 2 == 0) FormatSamples.someRun else otherRun), batch))
    val run = begin()
    store.asked.clear()
    batches.init.foreach(of => result(run.deleteEntry(of)))
    answer(run, ToDriver.Release(Vector("0/0" -> 150L))): Unit
    commit(run, 150)
    timer.advance(3600000)
    // Besides 99 claims, for the run knows its own, the entries that these do not fence.
    assert(store.count("readRange") == 99 + 51 && store.count("read") == 0, store.asked)
    assert(batches.size <= 101)
  })

  test("without exclusive creation, a replaced entry fences the next one")(new NotExclusiveFixture {
    val run = begin()
    (0L to 1L).foreach(commit(run, _))
    writeEntry(1, otherRun, 9, idOf(0), committed(1))
    answer(run, seal(1, 2, 0, inline(1)))
    assert(failure(run.commit(2, content, Seq(1))).isInstanceOf[FencedException])
    assert(batches == Seq(0, 1))
  })

  test("without exclusive creation, a commit is unknown if its entry cannot be read back")(new NotExclusiveFixture {
    val run = begin()
    answer(run, seal(1, 0, 0, inline(1)))
    store.script("readTail", Fail())
    assert(failure(run.commit(0, content, Seq(1))).getMessage.contains("DSTL_COMMIT_UNKNOWN"))
    assert(answer(run, ToDriver.Withdraw(1, 0)) == FromDriver.Withdrawal(true))
  })

  test("without exclusive creation, files of other runs are kept")(new NotExclusiveFixture {
    begin(otherRun): Unit
    put(file(1, 1, otherRun))
    commit(begin(), 0)
    assert(has(file(1, 1, otherRun)))
  })
}
