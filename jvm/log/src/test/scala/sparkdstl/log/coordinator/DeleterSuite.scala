// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.retention.Deleter
import sparkdstl.log.request.ScriptedStore.Fail
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Put

class DeleterSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  private class Fixture(logged: Int) extends RunFixture {
    (0L until logged.toLong).foreach(batch => writeEntry(batch, otherRun, 1, None, committed(batch)))
    val deleter = new Deleter(storage, entries)
    private var requested = Set.empty[Long]

    def delete(batches: Long*): Unit =
      batches.foreach(batch => requested = result(deleter.deleteUnowned(batch, requested)))

    def plain(batch: Long): Unit = store.memory.begin(Put(location.entry(batch), Payload(content))): Unit
  }

  test("without a run only a sequence of entries from the newest down is deleted")(new Fixture(6) {
    delete(1, 3, 4)
    assert(batches == (0 to 5))
    delete(5)
    assert(batches == Seq(0, 1, 2))
  })

  test("without a run a purge of everything deletes the newest entry only")(new Fixture(3) {
    delete(0, 1, 2)
    assert(batches == Seq(0, 1))
  })

  test("without a run a purge of everything keeps the newest entry if a later batch has begun")(new Fixture(3) {
    store.memory.begin(Put(new Path(location.root, "offsets/3"), Payload(Array[Byte](1))))
    delete(0, 1, 2)
    assert(batches == Seq(0, 1, 2))
  })

  test("entries without a log are deleted on request, and unreadable entries are not")(new Fixture(1) {
    plain(1)
    plain(2)
    delete(1)
    assert(batches == Seq(0, 2))
    store.script("readTail", Fail())
    assert(failure(deleter.deleteUnowned(2, Set.empty)).getMessage.contains("DSTL_READ_FAILED"))
    assert(batches == Seq(0, 2))
  })

  test("a deletion of an entry that does not exist is not remembered")(new Fixture(2) {
    delete(2)
    Seq(2L, 3L).foreach(batch => writeEntry(batch, otherRun, 1, None, committed(batch)))
    delete(3)
    assert(batches == Seq(0, 1, 2))
  })

  test("a rollback below another run's entry deletes nothing")(new Fixture(3) {
    assert(result(deleter.rollBack(1, Set.empty)).isEmpty && batches == Seq(0, 1, 2))
    assert(result(deleter.rollBack(9, Set.empty)).isEmpty, "the entry does not exist")
  })
}
