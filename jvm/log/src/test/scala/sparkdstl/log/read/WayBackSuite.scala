// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.util.UUID

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.RunFixture
import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.{CommittedSegment, SegmentKind}
import sparkdstl.log.request.ScriptedStore.Fail
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Delete, Put, Replace}

class WayBackSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  /** Batches 0 to 5 of one store. */
  private class Fixture(snapshots: Long*) {
    val stored = new RunFixture
    import stored.location
    (0L to 5L).foldLeft(Option.empty[UUID]) { (previous, batch) =>
      val held = snapshots.filter(_ == batch)
        .map(of => CommittedSegment(key(of, 0, SegmentKind.Snapshot), 1, Vector(Left(Array[Byte](4)))))
      put(location.offsetsOf(batch), Array[Byte](1))
      val before = snapshots.filter(_ < batch).toVector
      Some(stored.writeEntryNaming(before, batch, otherRun, 1, previous, committed(batch) +: held: _*))
    }: Unit

    def put(file: Path, bytes: Array[Byte]): Unit = stored.store.memory.begin(Replace(file, Payload(bytes))): Unit
    def remove(file: Path): Unit = stored.store.memory.begin(Delete(Seq(file))): Unit
    def entry(batch: Long): Path = location.entry(batch)
    def offsets(batch: Long): Path = location.offsetsOf(batch)
    def backFrom(lost: Path): Option[Long] = result(new WayBack(stored.storage).newest(lost))
  }

  test("the way back from a lost entry is the batch before it")(new Fixture {
    assert(backFrom(entry(3)).contains(2L))
    remove(entry(3))
    assert(backFrom(entry(3)).contains(2L))
    put(entry(2), content)
    assert(backFrom(entry(3)).contains(1L), "without its log, an entry needs plain changelogs")
    put(new Path(stored.root, "state/0/0/3.changelog"), Array[Byte](1))
    assert(backFrom(entry(3)).contains(2L))
    put(entry(0), Array.emptyByteArray)
    assert(backFrom(entry(3)).isEmpty)
  })

  test("an entry is not needed after a snapshot that an earlier or the same entry holds")(new Fixture(3) {
    remove(entry(1))
    assert(backFrom(entry(5)).contains(4L))
    assert(backFrom(entry(4)).contains(3L))
    assert(backFrom(entry(3)).contains(0L))
  })

  test("a plain snapshot is a base as well")(new Fixture {
    put(new Path(stored.root, "state/0/0/3.zip"), Array[Byte](1))
    remove(entry(1))
    assert(backFrom(entry(4)).contains(3L))
    assert(backFrom(entry(3)).contains(2L))
    assert(backFrom(new Path(stored.root, "state/0/0/3.zip")).contains(0L))
  })

  test("a store with column families needs a snapshot")(new Fixture(3) {
    assert(backFrom(entry(3)).contains(2L))
    put(new Path(stored.root, "state/10/_stateSchema/default/0_x"), Array[Byte](1))
    assert(backFrom(entry(3)).contains(2L), "the schema is of another operator")
    put(new Path(stored.root, "state/0/_stateSchema/default/0_x"), Array[Byte](1))
    assert(backFrom(entry(3)).isEmpty)
    assert(backFrom(entry(4)).contains(3L))
  })

  test("a snapshot needs its data files")(new Fixture {
    val (file, snapshot) = (stored.location.file(RunFixture.file(1)), key(3, 0, SegmentKind.Snapshot))
    val segments = Seq(committed(3), CommittedSegment(snapshot, 1, Vector(Right(part(1)))))
    stored.writeEntry(3, otherRun, 1, stored.idOf(2), segments: _*): Unit
    put(file, Array[Byte](1))
    Seq(1L, 4L, 5L).foreach(batch => remove(entry(batch)))
    assert(backFrom(entry(5)).contains(3L))
    assert(backFrom(file).contains(0L))
  })

  test("each store of a batch needs changes since its base")(new Fixture {
    stored.writeEntry(5, otherRun, 1, stored.idOf(4), committed(5), committed(5, partition = 1)): Unit
    assert(backFrom(entry(9)).contains(4L))
  })

  test("a batch needs its entry in offsets, and the one before it")(new Fixture {
    assert(backFrom(offsets(5)).contains(4L))
    assert(backFrom(offsets(4)).contains(3L))
    put(offsets(3), Array.emptyByteArray)
    remove(offsets(2))
    assert(backFrom(offsets(5)).contains(1L))
  })

  test("an entry that was built on another one is not replayed on the one before it")(new Fixture {
    stored.writeEntry(3, otherRun, 1, Some(UUID.randomUUID()), committed(3)): Unit
    assert(backFrom(entry(5)).contains(2L))
  })

  test("the error names the batch, or no batch while storage fails")(new Fixture {
    val lost = LogErrors.missingEntry(entry(3), "0/0/4.changelog")
    val explained = result(new WayBack(stored.storage).explain(lost))
    assert(explained.isExplained && explained.getMessage.contains(s"`dstl rollback ${stored.root} --to 2 --apply`"))
    assert(explained.getMessage.contains(s"`dstl verify ${stored.root}`") && explained.getCause == null)
    stored.store.script("list", Fail())
    assert(result(new WayBack(stored.storage).explain(lost)) eq lost)
  })

  test("changes in a data file need the file")(new Fixture {
    val file = stored.location.file(RunFixture.file(1))
    stored.writeEntry(5, otherRun, 1, stored.idOf(4), CommittedSegment(key(5), 1, Vector(Right(part(1))))): Unit
    stored.store.memory.begin(Put(file, Payload(Array[Byte](1)))): Unit
    assert(backFrom(entry(9)).contains(5L))
    assert(backFrom(file).contains(4L))
  })
}
