package sparkdstl.log.coordinator

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.retention.Deleter
import sparkdstl.log.request.ScriptedStore.Fail
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Put

class DeleterSuite extends AnyFunSuite {
  import RunFixture._

  private class Fixture(logged: Int) {
    val fixture = new RunFixture
    import fixture._
    (0L until logged.toLong).foreach(batch => writeEntry(batch, otherRun, 1, None, committed(batch)))
    val deleter = new Deleter(storage, entries)
    private var requested = Set.empty[Long]

    def delete(batches: Long*): Unit =
      batches.foreach(batch => requested = result(deleter.deleteUnowned(batch, requested)))

    def plain(batch: Long): Unit = store.memory.begin(Put(location.entry(batch), Payload(content))): Unit
  }

  test("without a run only what is requested from the newest entry down is deleted") {
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

  test("a purge of everything keeps the newest entry when a batch was begun on it") {
    val asked = new Fixture(3)
    asked.fixture.store.memory.begin(Put(new Path(asked.fixture.location.root, "offsets/3"), Payload(Array[Byte](1))))
    asked.delete(0, 1, 2)
    assert(asked.fixture.batches == Seq(0, 1, 2))
  }

  test("entries without a log are deleted when requested, and an entry that cannot be read is not") {
    val asked = new Fixture(1)
    asked.plain(1)
    asked.plain(2)
    asked.delete(1)
    assert(asked.fixture.batches == Seq(0, 2))
    asked.fixture.store.script("readTail", Fail())
    assert(failure(asked.deleter.deleteUnowned(2, Set.empty)).getMessage.contains("DSTL_READ_FAILED"))
    assert(asked.fixture.batches == Seq(0, 2))
  }

  test("a request for an entry that does not exist yet does not count") {
    val asked = new Fixture(2)
    asked.delete(2)
    Seq(2L, 3L).foreach(batch => asked.fixture.writeEntry(batch, otherRun, 1, None, committed(batch)))
    asked.delete(3)
    assert(asked.fixture.batches == Seq(0, 1, 2))
  }

  test("an entry above which another run has committed is not the newest") {
    val asked = new Fixture(3)
    assert(result(asked.deleter.rollBack(1, Set.empty)).isEmpty && asked.fixture.batches == Seq(0, 1, 2))
    assert(result(asked.deleter.rollBack(9, Set.empty)).isEmpty, "there is no such entry")
  }
}
