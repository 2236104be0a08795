// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import org.scalacheck.{Gen, Prop}
import org.scalacheck.Test.Parameters
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.{HeldSnapshot, SnapshotList}
import sparkdstl.log.read.EntryFound

class RetentionPlanSuite extends AnyFunSuite {
  import LogViewSuite.{empty, index, zip}

  private val limits = RetentionLimits()

  /** Entries 0 until `count`; each entry of `snapshots` holds a snapshot of the version that its batch makes. */
  private def logOf(
      count: Int,
      snapshots: Long*
  ): LogView = (0L until count.toLong).foldLeft(empty.listed(LogViewSuite.none)) { (view, batch) =>
    val own = if (snapshots.contains(batch)) Vector(HeldSnapshot(zip(batch + 1), batch, Vector.empty)) else Vector.empty
    view.committed(batch, index(batch, Some(SnapshotList(batch, 0, own))), 1)
  }

  private def request(view: LogView, batches: Iterable[Long]): LogView = batches.foldLeft(view)(_ requestedToDelete _)

  private def deletable(view: LogView): Seq[Long] = RetentionPlan.of(view, limits).delete

  test("requested entries below the one that leads to the second newest snapshot are deleted") {
    val view = logOf(7, 1, 3, 5)
    assert(deletable(view).isEmpty, "nothing is requested")
    assert(deletable(request(view, 0L to 2L)) == Seq(0, 1, 2))
    assert(
      deletable(request(view, 0L to 4L)) == Seq(0, 1, 2),
      "the newest two snapshots and the entries between them are kept"
    )
    assert(deletable(request(view, Seq(0L, 2L))) == Seq(0), "the oldest retained entry is that of batch 1")
  }

  test("a snapshot counts only for versions that retain the entry which holds it") {
    val late = logOf(3).committed(
      3,
      index(3, Some(SnapshotList(3, 0, Vector(HeldSnapshot(zip(3), 3, Vector.empty))))),
      1
    ).committed(4, index(4, Some(SnapshotList(4, 0, Vector(HeldSnapshot(zip(4), 4, Vector.empty))))), 1)
    assert(deletable(request(late, 0L to 1L)).isEmpty, "version 3 is in the entry of batch 3, and batch 2 is retained")
    assert(deletable(request(late, 0L to 2L)) == Seq(0, 1))
  }

  test("one store that needs all entries keeps them") {
    val view = request(logOf(7, 1, 3, 5), 0L to 5L)
    assert(deletable(view.copy(stores = view.stores :+ "0/1")).isEmpty)
    val released = view.copy(stores = view.stores :+ "0/1").releasedBelow("0/1", 3)
    assert(deletable(released) == Seq(0, 1), "Spark's retention of plain snapshots has reported")
    assert(deletable(released.releasedBelow("0/1", 1)) == Seq(0, 1), "a lower release has no effect")
  }

  test("fences and the newest entry are kept") {
    val view = request(logOf(7, 1, 3, 5), 0L to 6L)
    assert(deletable(view.fencedAt(Set(1))) == Seq(0, 2))
    val all = view.releasedBelow("0/0", 100)
    assert(deletable(all) == (0L to 5L))
  }

  test("a pinned batch keeps what it needs and all later entries, like one that Spark retains") {
    val view = request(logOf(9, 1, 3, 5, 7), 0L to 7L)
    assert(deletable(view) == (0L to 4L))
    assert(deletable(view.pinnedAt(Set(4, 6))) == (0L to 2L), "the entry of batch 3 holds the snapshot below")
    assert(deletable(view.pinnedAt(Set(2)).releasedBelow("0/0", 100)) == Seq(0, 1), "plain snapshots release no pin")
    assert(RecoveryPlan.of(view.pinnedAt(Set(4)), "0/0") == RecoveryPlan.of(view, "0/0"), "executors do not need it")
    assert(view.pinnedAt(Set(4)).keptByPins == 4 && view.keptByPins == 0)
  }

  test("a pin of an entry that is gone keeps nothing") {
    val view = request(logOf(9, 1, 3, 5, 7), 0L to 7L).deleted(Seq(0, 1))
    assert(deletable(view.pinnedAt(Set(1, 99))) == (2L to 4L))
  }

  test("without stores a pin keeps entries without segments") {
    val view = request(LogView.start(2, Map(0L -> 1L, 1L -> 1L, 2L -> 1L), EntryFound.Plain), Seq(0, 1))
      .read(0, EntryFound.Plain).read(1, EntryFound.Plain)
    assert(deletable(view) == Seq(0, 1) && deletable(view.pinnedAt(Set(1))) == Seq(0))
  }

  test("a round has a bounded size and reads only unread entries before their deletion") {
    val view = request(logOf(7).releasedBelow("0/0", 7), 0L to 5L)
    assert(RetentionPlan.of(view, RetentionLimits(deletions = 2)) == RetentionPlan(Vector(0, 1), Vector.empty))
    val unread = LogView.start(2, Map(0L -> 1L, 1L -> 1L, 2L -> 1L), EntryFound.Absent).copy(stores = Vector("0/0"))
    val released = request(unread.releasedBelow("0/0", 2), Seq(0))
    val plan = RetentionPlan.of(released.listed(LogViewSuite.none.copy(plainUpTo = 2)), limits)
    assert(plan == RetentionPlan(Vector(0), Vector(0)))
    val maybeRepartitioned = released.listed(LogViewSuite.none.copy(plainUpTo = 3))
    assert(RetentionPlan.of(maybeRepartitioned, limits) == RetentionPlan(Vector.empty, Vector(1)), "for its stores")
    assert(RetentionPlan.of(maybeRepartitioned.damaged(1), limits).isEmpty)
  }

  test("a store that a repartition has removed keeps what it needs until no batch that has it is retained or pinned") {
    def committed(view: LogView, batch: Long, partitions: Int, plainUpTo: Long) = {
      val held = Vector(HeldSnapshot(zip(batch + 1), batch, Vector.empty))
      val one = index(batch, Some(SnapshotList(batch, plainUpTo, held)))
      val changes = (0 until partitions).map(of =>
        one.entries.head.copy(key = one.entries.head.key.copy(partition = of))
      )
      view.committed(batch, one.copy(entries = changes.toVector), 1)
    }
    val before = (0L to 4L).foldLeft(empty.listed(LogViewSuite.none))(committed(_, _, partitions = 2, plainUpTo = 0))
    val view = (6L to 9L).foldLeft(before)(committed(_, _, partitions = 1, plainUpTo = 6))
    assert(view.stores == Seq("0/0"))
    assert(deletable(request(view, 0L to 3L)).isEmpty, "version 5 of 0/1 needs all entries")
    assert(deletable(request(view, 0L to 4L)) == (0L to 4L))
    assert(deletable(request(view, 0L to 8L).pinnedAt(Set(4))).isEmpty)
  }

  test("entries are read until a store is known, and entries without segments are deleted") {
    val view = request(LogView.start(2, Map(0L -> 1L, 1L -> 1L, 2L -> 1L), EntryFound.Plain), Seq(0, 1))
    assert(RetentionPlan.of(view, limits) == RetentionPlan(Vector.empty, Vector(0, 1)))
    val read = view.read(0, EntryFound.Plain)
    assert(RetentionPlan.of(read, limits) == RetentionPlan(Vector(0), Vector.empty))
  }

  test("an entry without segments is kept while a store needs its version") {
    val view = LogView.start(2, Map(0L -> 1L, 1L -> 1L, 2L -> 1L), EntryFound.Plain).copy(stores = Vector("0/0"))
    assert(deletable(request(view.read(0, EntryFound.Plain), Seq(0, 1))).isEmpty)
  }

  test("the log is needed until every store has plain files instead of the newest entry with segments") {
    val off = index(3, None).copy(entries = Vector.empty)
    val view = logOf(3).copy(stores = Vector("0/0", "0/1")).committed(3, off, 1).committed(4, off, 1)
    def needs(versions: Long*) =
      RetentionPlan.needsLog(view.stores.zip(versions).foldLeft(view) { case (of, (store, to)) =>
        of.releasedBelow(store, to)
      })
    assert(needs() && needs(4, 3) && needs(3, 4) && !needs(4, 4))
    val fenced = view.releasedBelow("0/0", 4).releasedBelow("0/1", 4).fencedAt(Set(2))
    assert(!RetentionPlan.needsLog(fenced), "an entry that is kept for another reason")
    assert(!RetentionPlan.needsLog(empty.committed(0, off, 1)), "there were never segments")
  }

  test("no retained version needs a deleted entry") {
    val some = Gen.zip(Gen.choose(1, 12), Gen.someOf(0L to 11L), Gen.someOf(0L to 11L))
    val holds = Prop.forAll(some) { case (count, snapshots, requested) =>
      val view = request(logOf(count, snapshots.toSeq: _*), requested)
      val gone = deletable(view).toSet
      // Each version that Spark retains can be rebuilt from a snapshot at or below it and all entries since.
      (0L until count.toLong).filterNot(view.requested).forall { batch =>
        val from = snapshots.filter(of => of <= batch && of < count && !gone(of)).maxOption
        from.fold(gone.isEmpty)(of => (of to batch).forall(!gone(_))) && !gone(batch)
      }
    }
    val outcome = org.scalacheck.Test.check(Parameters.default.withMinSuccessfulTests(1000), holds)
    assert(outcome.passed, outcome.status)
  }

  test("the recovery plan of a store holds the retained entries with segments") {
    val view = request(logOf(7, 1, 3, 5), 0L to 4L)
    val plan = RecoveryPlan.of(view.read(5, EntryFound.Plain), "0/0")
    assert(plan.lowest == 4 && plan.changelogs == Vector(4, 5, 7))
    assert(plan.snapshots.map(_.version) == Vector(4, 6) && plan.plainUpTo == 0)
  }

  test("a deletion from the newest entry down is a rollback, and a purge down to the oldest is not") {
    assert(RollbackPlan.of((0L to 5L).toVector, Set(3, 4)) == RollbackPlan(Vector(5, 4, 3), None))
    assert(RollbackPlan.of((0L to 5L).toVector, Set(1, 3)) == RollbackPlan(Vector(5), None))
    assert(RollbackPlan.of((0L to 2L).toVector, Set(0, 1)) == RollbackPlan(Vector(2), Some(3)))
  }
}
