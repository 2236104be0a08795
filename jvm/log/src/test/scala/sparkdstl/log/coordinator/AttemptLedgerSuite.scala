// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.attempts.{AttemptLedger, InlineBudget}
import sparkdstl.log.format.SegmentKind
import sparkdstl.log.transport.{FromDriver, SealedPart, SealedSegment, ToDriver}

class AttemptLedgerSuite extends AnyFunSuite {
  import RunFixture._

  private val accepted = FromDriver.Accepted(None)
  private val limit = 1000L

  private class Fixture {
    val budget = new InlineBudget(1000)
    val ledger = new AttemptLedger(budget)

    def take(seal: ToDriver.Seal, executor: String = "1"): Assertion =
      assert(ledger.seal(executor, seal, limit) == accepted)

    def attempts: Map[String, Long] =
      ledger.result.toOption.get.map(segment => segment.key.relativePath -> segment.attempt).toMap

    /** As a run does, which writes the result into an entry first. */
    def committed(batch: Long): Set[String] = {
      assert(ledger.result.isRight)
      ledger.committed(batch)
    }

    def isSettled: Boolean = ledger.whenSettled.isCompleted
  }

  test("a repeated seal changes nothing")(new Fixture {
    take(seal(1, 0, 0, inline(1, 2)))
    take(seal(1, 0, 0, inline(1, 2)))
    assert(budget.inUse == 2)
    ledger.close(0, Set.empty, Nil)
    take(seal(1, 0, 0, inline(1, 2)))
    assert(attempts == Map("0/0/1.changelog" -> 1L))
  })

  test("of a segment that an attempt writes twice only the last bytes count")(new Fixture {
    take(ToDriver.Seal(1, 0, Vector(segment(key(0), inline(1, 2, 3)), segment(key(0), inline(7)))))
    assert(budget.inUse == 1)
    ledger.close(0, Set.empty, Nil)
    assert(ledger.result.toOption.get.flatMap(_.parts).flatMap(_.left.toOption).map(_.toSeq) == Vector(Seq[Byte](7)))
    committed(0)
    assert(budget.inUse == 0)
  })

  test("a withdrawn attempt holds no memory, and a later seal of it is refused")(new Fixture {
    take(seal(1, 0, 0, inline(1, 2)))
    assert(!ledger.withdraw(1, 0))
    assert(!ledger.withdraw(2, 0))
    assert(budget.inUse == 0)
    assert(ledger.seal("1", seal(2, 0, 0, inline(1)), limit).isInstanceOf[FromDriver.Refused])
    assert(!ledger.hasSeals(0))
    ledger.close(0, Set.empty, Nil)
    assert(isSettled && attempts.isEmpty)
  })

  test("a closed batch refuses seals, and its winners cannot be withdrawn")(new Fixture {
    take(seal(1, 0, 0, inline(1)))
    take(seal(2, 0, 0, inline(1)))
    ledger.close(0, Set.empty, Seq(2))
    assert(ledger.seal("1", seal(3, 0, 1, inline(1)), limit).isInstanceOf[FromDriver.Refused])
    assert(ledger.withdraw(2, 0))
    assert(!ledger.withdraw(1, 0))
    committed(0)
    assert(ledger.withdraw(2, 0))
    assert(!ledger.withdraw(1, 0))
  })

  test("the attempt that Spark took last wins, and the others lose")(new Fixture {
    take(seal(1, 0, 0, inline(1)), "a")
    take(seal(2, 0, 0, inline(2)), "b")
    take(seal(3, 0, 0, inline(3)), "c")
    val closing = ledger.close(0, Set.empty, Seq(3, 1, 3, 2))
    assert(closing.losers.toSet == Set(("a", 1L, "0/0"), ("c", 3L, "0/0")))
    assert(attempts == Map("0/0/1.changelog" -> 2L))
  })

  test("without a result from Spark, an earlier durable attempt wins if the last upload fails")(new Fixture {
    take(seal(1, 0, 0, inline(1)), "a")
    take(seal(2, 0, 0, SealedPart.Pending(7, 10)), "b")
    assert(ledger.close(0, Set.empty, Nil).losers.isEmpty)
    assert(!isSettled)
    assert(ledger.holders == Set("b"))
    ledger.uploaded("b", 7, Left("no"))
    assert(isSettled)
    assert(attempts == Map("0/0/1.changelog" -> 1L))
  })

  test("among seals without a task, the last seal of each segment wins")(new Fixture {
    def alone(attempt: Long, kind: SegmentKind): ToDriver.Seal =
      ToDriver.Seal(attempt, 0, Vector(segment(key(0, 0, kind), inline(1))))
    take(alone(-5, SegmentKind.Changelog))
    take(alone(-9, SegmentKind.Checksum))
    take(alone(-7, SegmentKind.Changelog))
    val closing = ledger.close(0, Set.empty, Nil)
    assert(closing.losers.isEmpty)
    assert(isSettled)
    assert(attempts == Map("0/0/1.changelog" -> -7L, "0/0/1.changelog.crc" -> -9L))
  })

  test("the files of a snapshot belong to its attempt, with and without checkpoint ids") {
    for (id <- Seq(None, Some("x"))) {
      val fixture = new Fixture
      import fixture._
      def of(attempt: Long, id: Option[String]): ToDriver.Seal = {
        val changelog = key(0).copy(qualifier = id)
        val file = key(0).copy(qualifier = Some(s"000008-$attempt"), kind = SegmentKind.SnapshotFile)
        val keys = Vector(changelog, changelog.copy(kind = SegmentKind.Snapshot), file)
        ToDriver.Seal(attempt, 0, keys.map(segment(_, inline(1))))
      }
      take(of(1, id))
      take(of(2, id.map(_ => "y")))
      ledger.close(0, id.toSet, Seq(1))
      assert(attempts.values.toSet == Set(1L) && attempts.keySet("0/0/1_000008-1.sst") && attempts.size == 3, id)
    }
  }

  test("committed checkpoint ids choose the winners, and ids without a seal are reported")(new Fixture {
    def of(attempt: Long, id: String): ToDriver.Seal =
      ToDriver.Seal(attempt, 0, Vector(segment(key(0).copy(qualifier = Some(id)), inline(1))))
    take(of(1, "x"))
    take(of(2, "y"))
    take(of(-3, "z"))
    take(of(-4, "q"))
    val closing = ledger.close(0, Set("x", "missing"), Seq(2))
    assert(closing.missingIds == Set("missing"))
    assert(attempts == Map("0/0/1_x.changelog" -> 1L))
  })

  test("all segments under a committed checkpoint id count, even from several attempts")(
    new Fixture {
      def of(attempt: Long, id: String, kind: SegmentKind): ToDriver.Seal =
        ToDriver.Seal(attempt, 0, Vector(segment(key(0, 0, kind).copy(qualifier = Some(id)), inline(1))))
      take(of(4, "x", SegmentKind.Changelog), "a")
      take(of(-2, "x", SegmentKind.Checksum), "a")
      take(of(5, "y", SegmentKind.Changelog), "b")
      take(of(-3, "y", SegmentKind.Checksum), "b")
      assert(ledger.close(0, Set("x"), Seq(4)).losers == Vector(("b", 5L, "0/0")))
      assert(attempts == Map("0/0/1_x.changelog" -> 4L, "0/0/1_x.changelog.crc" -> -2L))
    }
  )

  test("pending uploads are lost with their executor unless their report still arrives")(new Fixture {
    take(seal(1, 0, 0, SealedPart.Pending(1, 10), SealedPart.Pending(2, 10)), "a")
    take(seal(2, 0, 1, SealedPart.Pending(1, 10)), "b")
    ledger.close(0, Set.empty, Seq(1, 2))
    ledger.uploaded("a", 1, Right(part(1)))
    ledger.executorLost("a", "it is gone")
    assert(!isSettled)
    assert(ledger.unsettled == Vector("0/1"))
    ledger.uploaded("b", 1, Right(part(2)))
    assert(isSettled)
    assert(ledger.result.left.toOption.get == Vector("0/0" -> "executor a: it is gone"))
    ledger.uploaded("a", 2, Right(part(3)))
    assert(attempts.size == 2)
  })

  test("changes are refused when their base is not known to be the committed attempt")(new Fixture {
    def on(attempt: Long, batch: Long, base: Long): ToDriver.Seal =
      ToDriver.Seal(attempt, batch, Vector(SealedSegment(key(batch), Some(base), Vector(inline(1)))))
    ledger.forget(4)
    assert(ledger.seal("1", on(9, 5, 8), limit).asInstanceOf[FromDriver.Refused].stale == Vector("0/0"))
    take(seal(1, 5, 0, inline(1)))
    ledger.close(5, Set.empty, Seq(1))
    committed(5)
    assert(ledger.seal("1", on(3, 6, 2), limit).asInstanceOf[FromDriver.Refused].stale == Vector("0/0"))
    take(on(4, 6, 1))
  })

  test("a report that arrives while the entry is written does not change which attempt was committed")(new Fixture {
    def on(attempt: Long, base: Long): ToDriver.Seal =
      ToDriver.Seal(attempt, 1, Vector(SealedSegment(key(1), Some(base), Vector(inline(1)))))
    take(seal(1, 0, 0, inline(1)), "a")
    take(seal(2, 0, 0, SealedPart.Pending(7, 10)), "b")
    ledger.close(0, Set.empty, Nil)
    ledger.executorLost("b", "it is gone")
    assert(isSettled && attempts == Map("0/0/1.changelog" -> 1L))
    ledger.uploaded("b", 7, Right(part(2)))
    assert(ledger.committed(0) == Set(file(2)))
    assert(ledger.seal("1", on(4, base = 2), limit).asInstanceOf[FromDriver.Refused].stale == Vector("0/0"))
    take(on(3, base = 1))
  })

  private class CarryingFixture extends Fixture {
    (0 to 3).foreach(partition => take(seal(partition.toLong, 4, partition, inline(1))))
    ledger.close(4, Set.empty, 0L to 3L)
    committed(4)

    /** Seals a task of batch 5 that carries snapshots. Returns the stores whose snapshots are not taken. */
    def carrying(partition: Int, snapshots: Seq[SealedSegment]): Seq[String] = {
      val changes = SealedSegment(key(5, partition), Some(partition.toLong), Vector(inline(1)))
      val seal = ToDriver.Seal(10L + partition, 5, Vector(changes), snapshots.toVector)
      ledger.seal("1", seal, carriedLimit = 100).asInstanceOf[FromDriver.Accepted].notTaken.map(_._1)
    }
  }

  test("the carried snapshots of a batch have a bounded size, but the first is always taken")(new CarryingFixture {
    assert(carrying(0, snapshot(5, Nil, 0, bytes = 150)).isEmpty)
    assert(carrying(1, snapshot(5, Nil, 1, bytes = 10)) == Seq("0/1"))
    ledger.close(5, Set.empty, 10L to 11L)
    val zips = ledger.result.toOption.get.filter(_.key.kind == SegmentKind.Snapshot)
    assert(zips.map(_.key.partition) == Vector(0))
    committed(5)
    assert(budget.inUse == 0)
  })

  test("a snapshot that has waited longer fits into a batch that has no room for a newer one")(new CarryingFixture {
    assert(carrying(0, snapshot(5, Nil, 0, bytes = 45)).isEmpty)
    assert(carrying(1, snapshot(5, Nil, 1, bytes = 30)) == Seq("0/1"))
    assert(carrying(2, snapshot(2, Nil, 2, bytes = 30)).isEmpty)
    assert(carrying(3, snapshot(1, Nil, 3, bytes = 30)) == Seq("0/3"))
  })

  test("a commit returns the files that only losing attempts of its batch name")(new Fixture {
    take(seal(1, 0, 0, SealedPart.Stored(part(1))))
    take(seal(2, 0, 0, SealedPart.Stored(part(2)), SealedPart.Stored(part(3))))
    take(seal(3, 1, 0, SealedPart.Stored(part(3))))
    ledger.close(0, Set.empty, Seq(1))
    assert(committed(0) == Set(file(2)))
  })

  test("an ended run holds no memory, and still knows the attempts of its last commit")(new Fixture {
    take(seal(1, 0, 0, inline(1)))
    take(seal(2, 0, 0, inline(1)))
    ledger.close(0, Set.empty, Seq(1))
    ledger.end()
    assert(budget.inUse == 0)
    assert(ledger.withdraw(1, 0))
    assert(!ledger.withdraw(2, 0))
    assert(ledger.seal("1", seal(3, 1, 0, inline(1)), limit).isInstanceOf[FromDriver.Refused])
  })

  test("the cost of an upload report does not grow with the number of stores")(new Fixture {
    val (tasks, storesPerTask) = (10000, 4)
    def segments(task: Int): Vector[SealedSegment] = Vector.tabulate(storesPerTask) { of =>
      segment(key(0, task).copy(storeName = s"s$of"), SealedPart.Pending(task.toLong * storesPerTask + of, 10))
    }
    (0 until tasks).foreach(task => take(ToDriver.Seal(task.toLong, 0, segments(task)), s"${task % 100}"))
    ledger.close(0, Set.empty, (0 until tasks).map(_.toLong))
    (tasks * storesPerTask - 1 to 0 by -1).foreach { ticket =>
      assert(!isSettled)
      ledger.uploaded(s"${ticket / storesPerTask % 100}", ticket.toLong, Right(part(1)))
    }
    assert(isSettled)
    assert(ledger.result.toOption.get.size == tasks * storesPerTask)
  })
}
