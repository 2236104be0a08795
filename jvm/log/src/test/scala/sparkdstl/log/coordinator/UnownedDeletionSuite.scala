package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.retention.UnownedDeletion
import sparkdstl.log.request.ScriptedStore.Fail
import sparkdstl.log.storage.Payload

class UnownedDeletionSuite extends AnyFunSuite {
  import RunFixture._

  private class Fixture(logged: Int) {
    val fixture = new RunFixture
    (0L until logged.toLong).foreach(batch => fixture.writeEntry(batch, otherRun, 1, None, committed(batch)))
    val deletion = new UnownedDeletion(fixture.location, fixture.storage, fixture.entries, 60000, fixture.runtime)

    def delete(batches: Long*): Unit = batches.foreach(batch => result(deletion.delete(batch)))

    def plain(batch: Long): Unit = fixture.store.memory.put(fixture.location.entry(batch), Payload(content)): Unit
  }

  test("without a run only what is asked for from the newest entry down goes") {
    val asked = new Fixture(6)
    asked.delete(1, 3, 4)
    assert(asked.fixture.batches == (0 to 5))
    asked.delete(5)
    assert(asked.fixture.batches == Seq(0, 1, 2))
  }

  test("a purge of everything leaves all but the newest to a run that knows what is needed") {
    val asked = new Fixture(3)
    asked.delete(0, 1, 2)
    assert(asked.fixture.batches == Seq(0, 1))
  }

  test("entries without a log go when asked, and an entry that cannot be read does not") {
    val asked = new Fixture(1)
    asked.plain(1)
    asked.plain(2)
    asked.delete(1)
    assert(asked.fixture.batches == Seq(0, 2))
    asked.fixture.store.script("readTail", Fail())
    assert(failure(asked.deletion.delete(2)).getMessage.contains("DSTL_READ_FAILED"))
    assert(asked.fixture.batches == Seq(0, 2))
  }

  test("that an entry was asked for before it existed does not count") {
    val asked = new Fixture(2)
    asked.delete(2)
    Seq(2L, 3L).foreach(batch => asked.fixture.writeEntry(batch, otherRun, 1, None, committed(batch)))
    asked.delete(3)
    assert(asked.fixture.batches == Seq(0, 1, 2))
  }
}
