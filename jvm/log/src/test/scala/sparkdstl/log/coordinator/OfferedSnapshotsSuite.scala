package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.{SegmentKey, SegmentKind, SegmentPart}
import sparkdstl.log.request.ScriptedStore
import sparkdstl.log.transport.{FromDriver, SealedPart, SealedSegment, SnapshotPlace, ToDriver}

/** Snapshots that executors offer: which are taken, when they count, and how long what they consist of stays. */
class OfferedSnapshotsSuite extends AnyFunSuite {
  import RunFixture._

  private def zip(version: Long, partition: Int): SegmentKey =
    SegmentKey(0, partition, "", version, None, SegmentKind.Snapshot)

  private def sst(name: String, partition: Int): SegmentKey =
    SegmentKey(0, partition, "", 1, Some(name), SegmentKind.SnapshotFile)

  /** A snapshot of one SST file for each of these data files. */
  private def offer(version: Long, attempt: Long, files: Seq[String], partition: Int = 0, bytes: Int = 1) = {
    val parts = files.map { file =>
      SealedSegment(sst(s"000001-$file".replace('/', '-'), partition), None, Vector(SealedPart.Stored(at(file))))
    }
    val content = SealedPart.Inline(new Array[Byte](bytes))
    ToDriver.OfferSnapshot(attempt, SealedSegment(zip(version, partition), None, Vector(content)) +: parts.toVector)
  }

  private def at(file: String): SegmentPart = SegmentPart(Some(file), 24, 1, 0)

  private def commit(run: RunCoordinator, batch: Long, partitions: Range = 0 to 0): Unit = {
    partitions.foreach(of => result(run.answer("1", seal(batch * 10 + of, batch, of, inline(1)))): Unit)
    result(run.commit(batch, content, partitions.map(batch * 10 + _)))
  }

  private def answer(run: RunCoordinator, message: ToDriver): FromDriver = result(run.answer("1", message))

  private def places(run: RunCoordinator, partition: Int = 0): Seq[SnapshotPlace] =
    answer(run, ToDriver.ListStore(s"0/$partition")).asInstanceOf[FromDriver.Versions].snapshots

  private def isRefused(answer: FromDriver, why: String): Boolean = answer match {
    case FromDriver.SnapshotRefused(reason, _) => reason.contains(why)
    case _ => false
  }

  test("one of a committed version counts once the next entry holds it; its files are named there") {
    val fixture = new RunFixture
    val run = fixture.begin()
    fixture.put(file(1))
    assert(answer(run, offer(1, 0, Seq(file(1)))) == FromDriver.NotYet)
    commit(run, 0)
    assert(answer(run, offer(1, 0, Seq(file(1)))) == FromDriver.Noted)
    assert(answer(run, offer(1, 0, Seq(file(1)))) == FromDriver.Noted, "said twice")
    assert(places(run) == Nil)
    commit(run, 1)
    assert(places(run) == Seq(SnapshotPlace(1, None, 1)))
    val index = fixture.entry(1).get.index
    assert(index.entries.map(_.key.kind).toSet ==
      Set(SegmentKind.Changelog, SegmentKind.Snapshot, SegmentKind.SnapshotFile))
    assert(index.snapshots.get.held.map(of => (of.key, of.files)) == Seq(zip(1, 0) -> Vector(file(1))))
    val report = run.barrier.get
    assert(report.segments == 1, "the barrier's figures are of the batch alone")
    val ofSnapshot = index.entries.filter(_.key.kind != SegmentKind.Changelog).flatMap(_.parts)
    assert(report.snapshots == 1 && report.snapshotBytes == ofSnapshot.map(_.length.toLong).sum)
    assert(
      report.snapshotBytes > ofSnapshot.filter(_.file.isEmpty).map(_.length.toLong).sum,
      "files and what is inline"
    )
    assert(answer(run, offer(1, 0, Seq(file(1)))) == FromDriver.SnapshotHeld, "said again, late")
    commit(run, 2)
    assert(fixture.entry(2).get.index.entries.size == 1)
    result(run.close())
    assert(places(fixture.begin(otherRun)) == Seq(SnapshotPlace(1, None, 1)), "the next run knows")
  }

  test("what of a snapshot earlier ones have brought is not counted once more") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    assert(answer(run, offer(1, 0, Seq(file(1)))) == FromDriver.Noted)
    (1L to 2L).foreach(commit(run, _))
    assert(answer(run, offer(3, 20, Seq(file(1)), bytes = 7)) == FromDriver.Noted)
    commit(run, 3)
    assert(run.barrier.exists(report => report.snapshots == 1 && report.snapshotBytes == 7))
  }

  /** Looks at `late` while an entry comes to hold `first`, which is offered before it. */
  private def lookedAtMeanwhile(fixture: RunFixture, first: ToDriver, late: ToDriver): (RunCoordinator, FromDriver) = {
    val run = fixture.begin()
    (0L to 2L).foreach(commit(run, _, 0 to 1))
    assert(answer(run, first) == FromDriver.Noted)
    // Who committed the late one is on storage: what the driver has looked at last is another entry.
    assert(answer(run, offer(2, 11, Nil, partition = 1)) == FromDriver.Noted)
    val slow = new ScriptedStore.Hang
    fixture.store.script("readTail", slow)
    val answered = run.answer("1", late)
    commit(run, 3, 0 to 1)
    slow.release()
    (run, result(answered))
  }

  test("one that is said again, and is looked at while an entry comes to hold it, is not held twice") {
    val fixture = new RunFixture
    val (run, again) = lookedAtMeanwhile(fixture, offer(1, 0, Nil), offer(1, 0, Nil))
    assert(again == FromDriver.SnapshotHeld)
    commit(run, 4, 0 to 1)
    assert(fixture.entry(4).get.index.entries.forall(_.key.kind == SegmentKind.Changelog))
  }

  test("an older one that is looked at while an entry comes to hold a newer one is not wanted any more") {
    val (_, older) = lookedAtMeanwhile(new RunFixture, offer(3, 20, Nil), offer(1, 0, Nil))
    assert(isRefused(older, "a newer one"))
  }

  test("that of another attempt than the committed one is refused, of the last batch and of one before it") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    assert(isRefused(answer(run, offer(1, 7, Nil)), "task attempt 7"))
    commit(run, 1)
    assert(isRefused(answer(run, offer(1, 7, Nil)), "task attempt 7"))
    assert(answer(run, offer(1, 0, Nil)) == FromDriver.Noted)
    result(run.close())
    // An attempt of another run, of the same number.
    assert(isRefused(answer(fixture.begin(otherRun), offer(2, 10, Nil)), "was not committed"))
  }

  test("what waits and is replaced lets go of the files that only it names") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (1 to 3).foreach(sequence => fixture.put(file(sequence.toLong)))
    commit(run, 0, 0 to 1)
    commit(run, 1, 0 to 1)
    // The driver holds more than an entry may take at once, so that the second one has to wait.
    assert(answer(run, offer(2, 11, Nil, partition = 1, bytes = 900)) == FromDriver.Noted)
    assert(answer(run, offer(1, 0, Seq(file(1), file(2)))) == FromDriver.Noted)
    assert(answer(run, offer(2, 10, Seq(file(2), file(3)))) == FromDriver.Noted)
    assert(!fixture.has(file(1)) && fixture.has(file(2)) && fixture.has(file(3)))
    assert(isRefused(answer(run, offer(1, 0, Nil)), "newer"))
    commit(run, 2, 0 to 1)
    assert(places(run).map(_.version) == Seq(2))
  }

  test("a file stays as long as any entry names it, across runs, and goes with the last") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (1 to 2).foreach(sequence => fixture.put(file(sequence.toLong)))
    commit(run, 0)
    assert(answer(run, offer(1, 0, Seq(file(1), file(2)))) == FromDriver.Noted)
    commit(run, 1)
    result(run.close())
    val next = fixture.begin(otherRun)
    commit(next, 2)
    assert(answer(next, offer(3, 20, Seq(file(1)))) == FromDriver.Noted, "a reused file of an earlier run")
    commit(next, 3)
    commit(next, 4)
    (0L to 2L).foreach(batch => result(next.deleteEntry(batch)))
    assert(answer(next, ToDriver.Release(Vector("0/0" -> 4L))) == FromDriver.Noted)
    assert(fixture.batches == Seq(3, 4) && fixture.has(file(1)) && !fixture.has(file(2)))
    result(next.deleteEntry(3))
    answer(next, ToDriver.Release(Vector("0/0" -> 5L))): Unit
    assert(fixture.batches == Seq(4) && !fixture.has(file(1)))
  }

  test("an entry that another run has deleted meanwhile keeps no file") {
    val fixture = new RunFixture
    val run = fixture.begin()
    fixture.put(file(1))
    commit(run, 0)
    assert(answer(run, offer(1, 0, Seq(file(1)))) == FromDriver.Noted)
    (1L to 2L).foreach(commit(run, _))
    assert(answer(run, offer(3, 20, Seq(file(1)))) == FromDriver.Noted)
    commit(run, 3)
    val next = fixture.begin(otherRun)
    commit(next, 4)
    // The first run was about to delete them when the second began.
    (0L to 1L).foreach(batch => result(run.deleteEntry(batch)))
    answer(run, ToDriver.Release(Vector("0/0" -> 3L))): Unit
    assert(fixture.batches == Seq(2, 3, 4) && fixture.has(file(1)))
    (2L to 3L).foreach(batch => result(next.deleteEntry(batch)))
    answer(next, ToDriver.Release(Vector("0/0" -> 5L))): Unit
    assert(fixture.batches == Seq(4) && !fixture.has(file(1)))
  }

  test("word of a file that was let go is not believed, nor of one that an earlier run left unnamed") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    assert(answer(run, offer(1, 0, Seq(file(5)))) == FromDriver.Noted)
    (1L to 3L).foreach(commit(run, _))
    (0L to 1L).foreach(batch => result(run.deleteEntry(batch)))
    answer(run, ToDriver.Release(Vector("0/0" -> 3L))): Unit
    assert(fixture.batches == Seq(2, 3))
    val gone = Seq(file(4), file(5))
    assert(answer(run, offer(4, 30, gone :+ file(6))) ==
      FromDriver.SnapshotRefused("files that it consists of are gone", gone.toVector))
    assert(answer(run, offer(4, 30, Seq(file(6, run = otherRun, epoch = 7)))).isInstanceOf[FromDriver.SnapshotRefused])
    assert(answer(run, offer(4, 30, Seq(file(6)))) == FromDriver.Noted)
  }

  test("who goes back takes what was offered of later versions along") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (0L to 2L).foreach(commit(run, _))
    assert(answer(run, offer(3, 20, Seq(file(1)))) == FromDriver.Noted)
    result(run.deleteEntry(2))
    result(run.answer("1", seal(27, 2, 0, inline(2)))): Unit
    result(run.commit(2, content, Seq(27)))
    commit(run, 3)
    assert(places(run) == Nil)
    assert(isRefused(answer(run, offer(3, 20, Nil)), "attempt 20"))
    assert(answer(run, offer(3, 27, Nil)) == FromDriver.Noted)
  }

  test("the driver's memory for them is bounded, and given back") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    assert(answer(run, offer(1, 0, Nil, bytes = 1001)) == FromDriver.OverBudget)
    assert(answer(run, offer(1, 0, Nil, bytes = 900)) == FromDriver.Noted && fixture.budget.inUse == 900)
    commit(run, 1)
    assert(fixture.budget.inUse == 0)
    assert(answer(run, offer(2, 10, Nil, bytes = 900)) == FromDriver.Noted)
    result(run.close())
    assert(fixture.budget.inUse == 0)
    assert(answer(run, offer(2, 10, Nil)) == FromDriver.Superseded)
  }

  test("every 64th entry tells of all snapshots, those between of what came since") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (0L to 70L).foreach { batch =>
      commit(run, batch)
      if (batch % 10 == 0) assert(answer(run, offer(batch + 1, batch * 10, Nil)) == FromDriver.Noted)
    }
    def list(batch: Long) = fixture.entry(batch).get.index.snapshots.get
    assert(list(1).complete == 0 && list(63).complete == 0 && list(64).complete == 64 && list(70).complete == 64)
    assert(list(63).held.map(_.key.version) == Seq(1, 11, 21, 31, 41, 51, 61))
    assert(list(64).held.map(_.key.version) == list(63).held.map(_.key.version) && list(70).held.isEmpty)
    result(run.close())
    val reads = fixture.store.count("readTail")
    val next = fixture.begin(otherRun)
    assert(places(next).map(_.version) == Seq(1, 11, 21, 31, 41, 51, 61))
    assert(fixture.store.count("readTail") <= reads + 2, "the newest entry, and the one whose list it continues")
  }
}
