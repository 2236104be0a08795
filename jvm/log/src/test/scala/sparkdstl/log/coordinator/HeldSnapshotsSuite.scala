package sparkdstl.log.coordinator

import java.io.IOException

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.{CommittedSegment, SegmentKey, SegmentKind}
import sparkdstl.log.request.ScriptedStore.{Fail, Work}
import sparkdstl.log.storage.Payload
import sparkdstl.log.transport.{FromDriver, SnapshotPlace, ToDriver}

/** Snapshots that are part of commits are found again, whoever asks and whatever happened since. */
class HeldSnapshotsSuite extends AnyFunSuite {
  import RunFixture._

  private def snapshot(batch: Long): CommittedSegment =
    CommittedSegment(key(batch, 0, SegmentKind.Snapshot), 1, Vector(Left(Array[Byte](2))))

  private def commit(run: RunCoordinator, batch: Long, withSnapshot: Boolean): Unit = {
    val kinds = if (withSnapshot) Seq(SegmentKind.Changelog, SegmentKind.Snapshot) else Seq(SegmentKind.Changelog)
    val segments = kinds.map(kind => segment(key(batch, 0, kind), inline(1)))
    result(run.answer("1", ToDriver.Seal(batch, batch, segments.toVector))): Unit
    result(run.commit(batch, content, Seq(batch)))
  }

  private def listed(run: RunCoordinator, storeDirectory: String = "0/0"): FromDriver.Versions =
    result(run.answer("1", ToDriver.ListStore(storeDirectory))).asInstanceOf[FromDriver.Versions]

  private def named(fixture: RunFixture, batch: Long): Seq[Long] =
    fixture.entry(batch).get.index.snapshots.get.held.map(_.batch)

  private def versions(run: RunCoordinator): Seq[Long] = listed(run).snapshots.map(_.version)

  private def place(version: Long): SnapshotPlace = SnapshotPlace(version, None, version - 1)

  test("each entry names those before it, across runs, and the driver lists them by store") {
    val fixture = new RunFixture
    val first = fixture.begin()
    commit(first, 0, withSnapshot = true)
    commit(first, 1, withSnapshot = false)
    commit(first, 2, withSnapshot = true)
    assert(named(fixture, 0) == Seq(0) && named(fixture, 1) == Nil && named(fixture, 2) == Seq(2))
    assert((0L to 2L).map(fixture.entry(_).get.index.snapshots.get.complete) == Seq(0, 0, 0))
    assert(listed(first) == FromDriver.Versions(Vector(1, 2, 3), Vector(place(1), place(3)), 0))
    assert(listed(first, "0/1").snapshots == Nil)
    result(first.close())
    val second = fixture.begin(otherRun)
    assert(versions(second) == Seq(1, 3))
    commit(second, 3, withSnapshot = false)
    assert(named(fixture, 3) == Seq(0, 2))
  }

  test("an entry that is gone is named no more, and its snapshots are not listed") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (0L to 3L).foreach(batch => commit(run, batch, withSnapshot = batch != 1))
    result(run.deleteEntry(3))
    assert(versions(run) == Seq(1, 3))
    result(run.deleteEntry(0))
    result(run.answer("1", ToDriver.Release(Vector("0/0" -> 3L))))
    assert(fixture.batches == Seq(1, 2))
    commit(run, 3, withSnapshot = false)
    assert(named(fixture, 3) == Seq(2) && versions(run) == Seq(3))
  }

  test("the log goes up to the snapshot of which the oldest retained batch is rebuilt, and nobody has to say so") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (0L to 6L).foreach(batch => commit(run, batch, withSnapshot = batch % 2 == 1))
    def purge(below: Long): Unit = fixture.batches.filter(_ < below).foreach(batch => result(run.deleteEntry(batch)))
    purge(3)
    // Batch 3 and its snapshot.
    assert(fixture.batches == (3 to 6) && versions(run) == Seq(4, 6))
    purge(5)
    assert(fixture.batches == (3 to 6), "the newest two snapshots stay, and what is between them")
    commit(run, 7, withSnapshot = true)
    assert(fixture.batches == (5 to 7))
  }

  test("a snapshot that a later entry holds than the oldest retained one does not count: going back takes it away") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (0L to 2L).foreach(commit(run, _, withSnapshot = false))
    def isTaken(version: Long): Boolean = {
      val zip = SegmentKey(0, 0, "", version, None, SegmentKind.Snapshot)
      val message = ToDriver.OfferSnapshot(version - 1, Vector(segment(zip, inline(1))))
      result(run.answer("1", message)) == FromDriver.Noted
    }
    assert(isTaken(3))
    commit(run, 3, withSnapshot = false)
    assert(isTaken(4))
    commit(run, 4, withSnapshot = false)
    (0L to 1L).foreach(batch => result(run.deleteEntry(batch)))
    assert(fixture.batches == (0 to 4), "the entry of batch 3 holds version 3, and somebody may go back to batch 2")
    result(run.deleteEntry(2))
    assert(fixture.batches == (2 to 4))
  }

  test("where the newest entries have no log the one below them tells, a damaged one does not") {
    val fixture = new RunFixture
    fixture.writeEntry(0, otherRun, 1, None, committed(0), snapshot(0))
    fixture.writeEntryNaming(Vector(0), 1, otherRun, 1, fixture.idOf(0), committed(1))
    fixture.store.memory.replace(fixture.location.entry(2), Payload(content)): Unit
    assert(versions(fixture.begin()) == Seq(1))
    fixture.writeEntryNaming(Vector(0), 1, otherRun, 1, None, committed(1), snapshot(1))
    assert(versions(fixture.begin()) == Seq(1, 2))
    val damaged = fixture.store.memory.read(fixture.location.entry(1), 1 << 20).result.value.get.get
    damaged(damaged.length - 20) = (damaged(damaged.length - 20) ^ 1).toByte
    fixture.store.memory.replace(fixture.location.entry(1), Payload(damaged)): Unit
    assert(versions(fixture.begin()) == Seq(1))
  }

  test("an entry of another run that appeared since tells of its own") {
    val fixture = new RunFixture
    val run = fixture.begin()
    fixture.writeEntry(0, otherRun, 1, None, committed(0), snapshot(0))
    commit(run, 1, withSnapshot = false)
    assert(named(fixture, 1) == Seq(0) && versions(run) == Seq(1))
  }

  test("entries of another run that appeared since tell of those of them that this one never reads") {
    val fixture = new RunFixture
    val run = fixture.begin()
    fixture.writeEntry(0, otherRun, 1, None, committed(0), snapshot(0))
    fixture.writeEntryNaming(Vector(0), 1, otherRun, 1, fixture.idOf(0), committed(1))
    commit(run, 2, withSnapshot = false)
    assert(named(fixture, 2) == Seq(0) && versions(run) == Seq(1))
  }

  test("what could not be read is looked for again by the next who asks; no batch is committed without it") {
    val fixture = new RunFixture
    fixture.writeEntry(0, otherRun, 1, None, committed(0), snapshot(0))
    fixture.store.memory.replace(fixture.location.entry(1), Payload(content)): Unit
    val run = fixture.begin()
    fixture.store.always("readTail", Fail(new IOException("no")))
    assert(failure(run.answer("1", ToDriver.ListStore("0/0"))).getMessage.contains("could not be read"))
    fixture.store.always("readTail", Work)
    assert(versions(run) == Seq(1))
    commit(run, 2, withSnapshot = false)
    assert(named(fixture, 2) == Seq(0))
  }
}
