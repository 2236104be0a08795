package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.SegmentKind
import sparkdstl.log.transport._

/** Finished snapshots that seals carry: which are taken, when they count, and how long what they consist of stays. */
class CarriedSnapshotsSuite extends AnyFunSuite {
  import RunFixture._

  private def sealing(
      attempt: Long,
      batch: Long,
      base: Option[Long],
      carried: Vector[SealedSegment],
      partition: Int = 0
  ) =
    ToDriver.Seal(
      attempt,
      batch,
      Vector(SealedSegment(key(batch, partition), base, Vector(inline(1)))),
      carried
    )

  private def answer(run: RunCoordinator, message: ToDriver): FromDriver = result(run.answer("1", message))

  /** One attempt of the number of its batch, based on the batch before; returns what was not taken. */
  private def commit(
      run: RunCoordinator,
      batch: Long,
      carried: Vector[SealedSegment] = Vector.empty
  ): Vector[(String, Vector[String])] = {
    val accepted = answer(run, sealing(batch, batch, Some(batch - 1).filter(_ >= 0), carried))
    result(run.commit(batch, content, Seq(batch)))
    accepted.asInstanceOf[FromDriver.Accepted].notTaken
  }

  private def places(run: RunCoordinator): Seq[SnapshotPlace] =
    answer(run, ToDriver.ListStore("0/0")).asInstanceOf[FromDriver.Versions].snapshots

  test("one counts once the entry of the seal that carries it exists, across runs; its files are named there") {
    val fixture = new RunFixture
    val run = fixture.begin()
    fixture.put(file(1))
    commit(run, 0)
    assert(commit(run, 1, snapshot(1, Seq(file(1)))).isEmpty)
    assert(places(run) == Seq(SnapshotPlace(1, None, 1)))
    val index = fixture.entry(1).get.index
    assert(index.snapshots.get.held.map(of => (of.key.version, of.files)) == Seq(1L -> Vector(file(1))))
    val report = run.barrier.get
    assert(report.segments == 1 && report.snapshots == 1, "the barrier's figures are of the batch alone")
    assert(report.snapshotBytes == 2, "its zip and its file")
    commit(run, 2): Unit
    assert(fixture.entry(2).get.index.entries.size == 1)
    result(run.close())
    assert(places(fixture.begin(otherRun)) == Seq(SnapshotPlace(1, None, 1)))
  }

  test("without a verified base it is not taken: nothing proves that its version was committed") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    val accepted = answer(run, sealing(1, 1, None, snapshot(1)))
    assert(accepted == FromDriver.Accepted(run.barrier, Vector("0/0" -> Vector.empty)))
    result(run.commit(1, content, Seq(1)))
    assert(places(run) == Nil)
    assert(answer(run, sealing(2, 2, Some(7), snapshot(1))).isInstanceOf[FromDriver.Refused], "of a losing attempt")
  }

  test("that of an attempt which loses is not in the entry, and its files are deleted") {
    val fixture = new RunFixture
    val run = fixture.begin()
    Seq(1L, 2L).foreach(of => fixture.put(file(of)))
    commit(run, 0)
    answer(run, sealing(10, 1, Some(0), snapshot(1, Seq(file(1)))))
    answer(run, sealing(11, 1, Some(0), snapshot(1, Seq(file(2)))))
    result(run.commit(1, content, Seq(11)))
    assert(!fixture.has(file(1)) && fixture.has(file(2)))
    assert(fixture.entry(1).get.index.files == Set(file(2)))
  }

  test("one of a withdrawn attempt is not in the entry; its files are deleted with the commit") {
    val fixture = new RunFixture
    val run = fixture.begin()
    fixture.put(file(1))
    commit(run, 0)
    answer(run, sealing(10, 1, Some(0), snapshot(1, Seq(file(1)))))
    assert(answer(run, ToDriver.Withdraw(10, 1)) == FromDriver.Withdrawal(false))
    answer(run, sealing(11, 1, Some(0), Vector.empty))
    result(run.commit(1, content, Seq(11)))
    assert(places(run) == Nil && !fixture.has(file(1)) && fixture.budget.inUse == 0)
  }

  test("a seal that is sent again has the same answer, and the snapshot is there once") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    val message = sealing(1, 1, Some(0), snapshot(1))
    assert(answer(run, message) == answer(run, message))
    result(run.commit(1, content, Seq(1)))
    assert(fixture.entry(1).get.index.entries.count(_.key.kind == SegmentKind.Snapshot) == 1)
  }

  test("one that an entry holds already, or a later one, is not held twice, and is no reason to refuse anything") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    commit(run, 1)
    assert(commit(run, 2, snapshot(2)).isEmpty)
    assert(commit(run, 3, snapshot(2)).isEmpty && commit(run, 4, snapshot(1)).isEmpty)
    assert(places(run) == Seq(SnapshotPlace(2, None, 2)))
  }

  test("one that is older than what an entry holds is not taken, and its executor discards what no entry names of it") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (0L to 1L).foreach(commit(run, _))
    val held = snapshot(2, Seq(file(2)))
    assert(commit(run, 2, held).isEmpty)
    assert(commit(run, 3, snapshot(1, Seq(file(1), file(2)))) == Vector("0/0" -> Vector(file(1))))
    assert(commit(run, 4, held).isEmpty)
  }

  test("one that is older than what an entry holds is discarded although others name its files") {
    val fixture = new RunFixture
    val run = fixture.begin()
    (0L to 1L).foreach(commit(run, _))
    assert(commit(run, 2, snapshot(2, Seq(file(2)))).isEmpty)
    assert(commit(run, 3, snapshot(1, Seq(file(2)))) == Vector("0/0" -> Vector(file(2))))
    val message = sealing(4, 4, Some(3), snapshot(1, Seq(file(1))) ++ snapshot(1, Seq(file(1)), partition = 1))
    (1 to 2).foreach { _ =>
      val notTaken = answer(run, message).asInstanceOf[FromDriver.Accepted].notTaken
      assert(notTaken.contains("0/0" -> Vector(file(1))), "also if a seal names the file, for another store")
    }
  }

  test("what does not fit into an entry comes with a later seal, and holds up no changes") {
    val fixture = new RunFixture
    val run = fixture.begin()
    commit(run, 0)
    // The budget of the driver has 1000 bytes for all.
    assert(commit(run, 1, snapshot(1, bytes = 1500)) == Vector("0/0" -> Vector.empty))
    assert(commit(run, 2, snapshot(1, bytes = 500)).isEmpty)
    assert(places(run).map(_.batch) == Seq(2))
  }

  test("a file of a carried snapshot and of one that is part of the commit is named once") {
    val fixture = new RunFixture
    val run = fixture.begin()
    fixture.put(file(1))
    commit(run, 0)
    val carried = snapshot(1, Seq(file(1)))
    val message = sealing(1, 1, Some(0), carried)
    answer(run, message.copy(segments = message.segments ++ carried.drop(1)))
    result(run.commit(1, content, Seq(1)))
    assert(fixture.entry(1).get.index.entries.count(_.key.kind == SegmentKind.SnapshotFile) == 1)
    assert(fixture.has(file(1)) && places(run).map(_.version) == Seq(1))
  }

  test("a file stays as long as any entry names it, across runs, and is deleted with the last") {
    val fixture = new RunFixture
    val run = fixture.begin()
    Seq(1L, 2L).foreach(of => fixture.put(file(of)))
    commit(run, 0)
    commit(run, 1, snapshot(1, Seq(file(1), file(2))))
    result(run.close())
    val next = fixture.begin(otherRun)
    answer(next, sealing(2, 2, None, Vector.empty))
    result(next.commit(2, content, Seq(2)))
    commit(next, 3, snapshot(3, Seq(file(2))))
    commit(next, 4)
    commit(next, 5, snapshot(5, Seq(file(2))))
    (0L to 4L).foreach(batch => result(next.deleteEntry(batch)))
    fixture.timer.advance(10000)
    assert(fixture.batches == (2 to 5) && !fixture.has(file(1)) && fixture.has(file(2)))
  }

  test("one whose files may be gone is not taken, and is told which; the changes are") {
    val fixture = new RunFixture
    val run = fixture.begin()
    val gone = file(6, run = otherRun, epoch = 7)
    commit(run, 0)
    assert(commit(run, 1, snapshot(1, Seq(gone))) == Vector("0/0" -> Vector(gone)))
    assert(places(run) == Nil && fixture.batches == Seq(0, 1))
  }

  test("a snapshot that is part of the commit and names a file that may be gone refuses the task") {
    val fixture = new RunFixture
    val run = fixture.begin()
    val old = snapshot(1, Seq(file(6, run = otherRun, epoch = 7))).drop(1)
    val message = ToDriver.Seal(1, 1, Vector(SealedSegment(key(1), None, Vector(inline(1)))) ++ old)
    assert(answer(run, message).isInstanceOf[FromDriver.Refused])
  }

}
