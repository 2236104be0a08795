package sparkdstl.log.coordinator

import scala.concurrent.Future

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.FencedException
import sparkdstl.log.request.ScriptedStore.{Fail, Hang}
import sparkdstl.log.storage._
import sparkdstl.log.storage.StorageOperation._
import sparkdstl.log.transport.ToDriver

class EpochClaimerSuite extends AnyFunSuite {
  import RunFixture._

  /** As `inner`, but creating replaces. */
  private final class NotExclusive(inner: ObjectStore) extends ObjectStore {
    override def replacesAtomically: Boolean = inner.replacesAtomically
    override def deletionPageSize: Int = inner.deletionPageSize

    override def begin[A](operation: StorageOperation[A]): Attempt[A] = operation match {
      case Create(path, content) =>
        inner.begin(Replace(path, content))
        Attempt(Future.successful(None))
      case TryCreation(_) => Attempt(Future.successful(false))
      case other => inner.begin(other)
    }
  }

  test("each run has an epoch of its own, above all that were claimed and above the newest entry's") {
    val fixture = new RunFixture
    assert(fixture.begin().epoch == 1)
    assert(fixture.begin(otherRun).epoch == 2)
    fixture.writeEntry(4, otherRun, 7, None, committed(4))
    val run = fixture.begin()
    assert(run.epoch == 8 && run.lastCommitted == 4)
  }

  test("of two runs that claim at once one has the next epoch") {
    val fixture = new RunFixture
    val slow = new Hang
    fixture.store.script("create", slow)
    val first = fixture.tryToBegin()
    assert(fixture.begin(otherRun).epoch == 1)
    slow.release()
    assert(result(first).epoch == 2)
  }

  test("a run whose claim or listing fails does not begin") {
    val fixture = new RunFixture
    fixture.store.script("create", Fail())
    assert(failure(fixture.tryToBegin()).getMessage.contains("DSTL_UNUSABLE_CHECKPOINT"))
    fixture.store.script("list", Fail())
    assert(failure(fixture.tryToBegin()).getMessage.contains("DSTL_READ_FAILED"))
  }

  test(
    "where storage does not create exclusively, a replaced entry is noticed before the next one is written, and after"
  ) {
    val fixture = new RunFixture(seenStore = new NotExclusive(_))
    val run = fixture.begin()
    def commit(batch: Long) = {
      result(run.answer("1", seal(1, batch, 0, inline(1))))
      run.commit(batch, content, Seq(1))
    }
    result(commit(0))
    result(commit(1))
    fixture.writeEntry(1, otherRun, 9, fixture.idOf(0), committed(1))
    assert(failure(commit(2)).isInstanceOf[FencedException])
    assert(fixture.batches == Seq(0, 1))
  }

  test("where storage does not create exclusively, an entry that cannot be read again is one of which nobody knows") {
    val fixture = new RunFixture(seenStore = new NotExclusive(_))
    val run = fixture.begin()
    result(run.answer("1", seal(1, 0, 0, inline(1))))
    fixture.store.script("readTail", Fail())
    assert(failure(run.commit(0, content, Seq(1))).getMessage.contains("DSTL_COMMIT_UNKNOWN"))
    assert(result(run.answer("1", ToDriver.Withdraw(1, 0))) == sparkdstl.log.transport.FromDriver.Withdrawal(true))
  }

  test("where storage does not create exclusively, files of other runs stay") {
    val fixture = new RunFixture(seenStore = new NotExclusive(_))
    fixture.begin(otherRun): Unit
    fixture.put(file(1, 1, otherRun))
    val run = fixture.begin()
    result(run.answer("1", seal(1, 0, 0, inline(1))))
    result(run.commit(0, content, Seq(1)))
    assert(fixture.has(file(1, 1, otherRun)))
  }
}
