// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.format.SegmentKind
import sparkdstl.log.transport._

/** Finished snapshots that seals carry: which are taken, when they count, and how long their files stay. */
class CarriedSnapshotsSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  private def sealing(attempt: Long, batch: Long, base: Option[Long], carried: Vector[SealedSegment]) =
    ToDriver.Seal(attempt, batch, Vector(SealedSegment(key(batch), base, Vector(inline(1)))), carried)

  private class Carrying extends RunningFixture {

    /** Commits one attempt with the number of its batch, on the batch before; returns the snapshots not taken. */
    def carry(by: RunCoordinator, batch: Long, carried: Vector[SealedSegment]): Vector[(String, Vector[String])] = {
      val accepted = answer(by, sealing(batch, batch, Some(batch - 1).filter(_ >= 0), carried))
      result(by.commit(batch, content, Seq(batch)))
      accepted.asInstanceOf[FromDriver.Accepted].notTaken
    }

    def carry(batch: Long, carried: Vector[SealedSegment]): Vector[(String, Vector[String])] =
      carry(run, batch, carried)

    override def commit(batch: Long): Unit = carry(batch, Vector.empty): Unit

    def places(of: RunCoordinator = run): Seq[SnapshotPlace] =
      answer(of, ToDriver.ListStore("0/0")).asInstanceOf[FromDriver.Versions].snapshots
  }

  test("a carried snapshot exists, for later runs too, once the commit entry of its seal does")(new Carrying {
    put(file(1))
    commit(0)
    assert(carry(1, snapshot(1, Seq(file(1)))).isEmpty)
    assert(places() == Seq(SnapshotPlace(1, None, 1)))
    val index = entry(1).get.index
    assert(index.snapshots.get.held.map(of => (of.key.version, of.files)) == Seq(1L -> Vector(file(1))))
    val report = run.barrier.get
    assert(report.segments == 1 && report.snapshots == 1, "the barrier's figures are of the batch alone")
    assert(report.snapshotBytes == 2, "the bytes of its zip and its file")
    commit(2)
    assert(entry(2).get.index.entries.size == 1)
    result(run.close())
    assert(places(begin(otherRun)) == Seq(SnapshotPlace(1, None, 1)))
  })

  test("a carried snapshot is not taken from a seal without a verified base")(new Carrying {
    commit(0)
    val accepted = answer(sealing(1, 1, None, snapshot(1)))
    assert(accepted == FromDriver.Accepted(run.barrier, Vector("0/0" -> Vector.empty)))
    result(run.commit(1, content, Seq(1)))
    assert(places() == Nil)
    assert(answer(sealing(2, 2, Some(7), snapshot(1))).isInstanceOf[FromDriver.Refused], "the base is a losing attempt")
  })

  test("the entry holds no snapshot of a losing attempt, and its files are deleted")(new Carrying {
    Seq(1L, 2L).foreach(of => put(file(of)))
    commit(0)
    answer(sealing(10, 1, Some(0), snapshot(1, Seq(file(1)))))
    answer(sealing(11, 1, Some(0), snapshot(1, Seq(file(2)))))
    result(run.commit(1, content, Seq(11)))
    assert(!has(file(1)) && has(file(2)))
    assert(entry(1).get.index.files == Set(file(2)))
  })

  test("the entry holds no snapshot of a withdrawn attempt, and the commit deletes its files")(new Carrying {
    put(file(1))
    commit(0)
    answer(sealing(10, 1, Some(0), snapshot(1, Seq(file(1)))))
    assert(answer(ToDriver.Withdraw(10, 1)) == FromDriver.Withdrawal(false))
    answer(sealing(11, 1, Some(0), Vector.empty))
    result(run.commit(1, content, Seq(11)))
    assert(places() == Nil && !has(file(1)) && budget.inUse == 0)
  })

  test("a repeated seal gets the same answer, and its snapshot is committed once")(new Carrying {
    commit(0)
    val message = sealing(1, 1, Some(0), snapshot(1))
    assert(answer(message) == answer(message))
    result(run.commit(1, content, Seq(1)))
    assert(entry(1).get.index.entries.count(_.key.kind == SegmentKind.Snapshot) == 1)
  })

  test("a snapshot no newer than the committed one is not committed again, and its seal is accepted")(new Carrying {
    commit(0)
    commit(1)
    assert(carry(2, snapshot(2)).isEmpty)
    assert(carry(3, snapshot(2)).isEmpty && carry(4, snapshot(1)).isEmpty)
    assert(places() == Seq(SnapshotPlace(2, None, 2)))
  })

  test("a snapshot older than the committed one is not taken, and the answer lists its unnamed files")(new Carrying {
    (0L to 1L).foreach(commit(_))
    val held = snapshot(2, Seq(file(2)))
    assert(carry(2, held).isEmpty)
    assert(carry(3, snapshot(1, Seq(file(1), file(2)))) == Vector("0/0" -> Vector(file(1))))
    assert(carry(4, held).isEmpty)
  })

  test("a snapshot older than the committed one is not taken even if other snapshots name all its files")(new Carrying {
    (0L to 1L).foreach(commit(_))
    assert(carry(2, snapshot(2, Seq(file(2)))).isEmpty)
    assert(carry(3, snapshot(1, Seq(file(2)))) == Vector("0/0" -> Vector(file(2))))
    val message = sealing(4, 4, Some(3), snapshot(1, Seq(file(1))) ++ snapshot(1, Seq(file(1)), partition = 1))
    (1 to 2).foreach { _ =>
      val notTaken = answer(message).asInstanceOf[FromDriver.Accepted].notTaken
      assert(notTaken.contains("0/0" -> Vector(file(1))), "even if a seal of another store names the file")
    }
  })

  test("a later seal carries a snapshot that does not fit into an entry")(new Carrying {
    commit(0)
    // The driver's inline budget has 1000 bytes in all.
    assert(carry(1, snapshot(1, bytes = 1500)) == Vector("0/0" -> Vector.empty))
    assert(carry(2, snapshot(1, bytes = 500)).isEmpty)
    assert(places().map(_.batch) == Seq(2))
  })

  test("a file that a carried and a forced snapshot share is named once")(new Carrying {
    put(file(1))
    commit(0)
    val carried = snapshot(1, Seq(file(1)))
    val message = sealing(1, 1, Some(0), carried)
    answer(message.copy(segments = message.segments ++ carried.drop(1)))
    result(run.commit(1, content, Seq(1)))
    assert(entry(1).get.index.entries.count(_.key.kind == SegmentKind.SnapshotFile) == 1)
    assert(has(file(1)) && places().map(_.version) == Seq(1))
  })

  test("a file is deleted with the last entry that names it, whichever run wrote that entry")(new Carrying {
    Seq(1L, 2L).foreach(of => put(file(of)))
    commit(0)
    carry(1, snapshot(1, Seq(file(1), file(2))))
    result(run.close())
    val next = begin(otherRun)
    answer(next, sealing(2, 2, None, Vector.empty))
    result(next.commit(2, content, Seq(2)))
    carry(next, 3, snapshot(3, Seq(file(2))))
    carry(next, 4, Vector.empty)
    carry(next, 5, snapshot(5, Seq(file(2))))
    (0L to 4L).foreach(batch => result(next.deleteEntry(batch)))
    timer.advance(10000)
    assert(batches == (2 to 5) && !has(file(1)) && has(file(2)))
  })

  test("a snapshot that names a file which may be deleted is not taken, and the changes are committed")(new Carrying {
    val gone = file(6, run = otherRun, epoch = 7)
    commit(0)
    assert(carry(1, snapshot(1, Seq(gone))) == Vector("0/0" -> Vector(gone)))
    assert(places() == Nil && batches == Seq(0, 1))
  })

  test("a task is refused when its forced snapshot names a file that may be deleted")(new Carrying {
    val old = snapshot(1, Seq(file(6, run = otherRun, epoch = 7))).drop(1)
    val message = ToDriver.Seal(1, 1, Vector(SealedSegment(key(1), None, Vector(inline(1)))) ++ old)
    assert(answer(message).isInstanceOf[FromDriver.Refused])
  })
}
