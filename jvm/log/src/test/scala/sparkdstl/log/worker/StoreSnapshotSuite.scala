// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.request.ScriptedStore.Fail
import sparkdstl.log.transport.{FromDriver, SealedPart, SealedSegment}
import sparkdstl.log.worker.StoreSnapshot.Fate

class StoreSnapshotSuite extends AnyFunSuite {
  import Completed._

  private val zip = SegmentKey(0, 0, "", 1, None, SegmentKind.Snapshot)
  private val segments = Vector(SealedSegment(zip, None, Vector(SealedPart.Inline(Array[Byte](1)))))

  private def complete(): StoreSnapshot = {
    val snapshot = new StoreSnapshot(1)
    assert(snapshot.carry(1).isEmpty, "the upload is under way")
    snapshot.complete(segments)
    snapshot
  }

  test("a snapshot is held once the seal after the one that carried it is accepted") {
    val snapshot = complete()
    assert(snapshot.accepted(carried = false, None) == Fate.Pending, "a seal that did not carry it")
    assert(snapshot.carry(0).isEmpty, "the seal of the batch that makes its version")
    assert(snapshot.carry(1) == segments && snapshot.carry(1).isEmpty, "one seal at a time")
    assert(snapshot.accepted(carried = true, None) == Fate.Pending)
    assert(snapshot.carry(1).isEmpty, "the driver has it")
    assert(snapshot.accepted(carried = false, None) == Fate.Held && !snapshot.isUnderWay)
  }

  test("a later seal carries a snapshot that had no room, but not one whose files may be deleted") {
    val snapshot = complete()
    snapshot.carry(1): Unit
    assert(snapshot.accepted(carried = true, Some(Vector.empty)) == Fate.Pending)
    assert(snapshot.carry(1) == segments)
    assert(snapshot.accepted(carried = true, Some(Vector("gone"))) == Fate.Missing(Set("gone")))
    assert(!snapshot.isUnderWay)
  }

  test("a snapshot whose task is given up during the ask is not carried again, and an accepted one stays") {
    val asked = complete()
    asked.carry(1): Unit
    asked.givenUp()
    assert(!asked.isUnderWay)
    val taken = complete()
    taken.carry(1): Unit
    taken.accepted(carried = true, None): Unit
    taken.givenUp()
    assert(taken.accepted(carried = false, None) == Fate.Held)
  }

  test("the uploads of an abandoned snapshot are discarded unless a seal may have named them") {
    def discarded(before: StoreSnapshot => Unit, after: StoreSnapshot => Unit = _ => ()): Boolean = {
      val fixture = new WorkerFixture
      import fixture._
      fixture.newTask(): Unit
      val uploads = result(worker.snapshotUploads()).get
      val snapshot = new StoreSnapshot(1)
      val chunk = result(uploads.put(zip, new Array[Byte](10)))
      snapshot.uploads(chunk)
      timer.advance(5000)
      val file = result(chunk.location).file.get
      before(snapshot)
      snapshot.abandon()
      after(snapshot)
      timer.advance(60000)
      !objects(file.split('/').last)
    }
    assert(discarded(_ => ()))
    assert(discarded(_.complete(segments)))
    def named(snapshot: StoreSnapshot): Unit = {
      snapshot.complete(segments)
      snapshot.carry(1): Unit
    }
    def answered(carried: Boolean, notTaken: Option[Vector[String]])(snapshot: StoreSnapshot): Unit = {
      val fate = snapshot.accepted(carried, notTaken)
      assert(fate == Fate.Pending && !snapshot.isUnderWay)
      ()
    }
    assert(!discarded(named))
    assert(!discarded(named, answered(carried = true, None)), "the driver has it")
    assert(!discarded(named, answered(carried = false, None)), "the answer is to another seal")
    assert(!discarded(named, _.givenUp()), "it is unknown whether the driver has it")
    for (files <- Seq(Vector.empty, Vector("gone")))
      assert(discarded(named, answered(carried = true, Some(files))), "the driver does not have it")
  }

  /** A store with this snapshot. */
  private def storeOf(snapshot: StoreSnapshot, note: Fate => Unit): SealedStore = new SealedStore {
    override def carried(batch: Long): Vector[SealedSegment] = snapshot.carry(batch + 1)
    override def accepted(carried: Boolean, notTaken: Option[Vector[String]]): Unit =
      note(snapshot.accepted(carried, notTaken))
    override def givenUp(): Unit = snapshot.givenUp()
  }

  /** A task that has sent a seal with a snapshot. */
  private class Carrying extends WorkerFixture {
    val task: TaskWriter = newTask()
    answers = PartialFunction.empty
    write(task, partition = 0, length = 5)
    val snapshot: StoreSnapshot = complete()
    var fates: Vector[Fate] = Vector.empty
    task.carryFor("0/0", storeOf(snapshot, fates :+= _))
    task.seal(): Unit
  }

  test("each repetition of a seal carries the snapshots, and their stores receive the outcome")(new Carrying {
    stayAway()
    timer.advance(1000)
    answer(FromDriver.Accepted(None))
    assert(seals.size == 2 && seals.forall(_.carried == segments) && fates == Vector(Fate.Pending))
    assert(snapshot.accepted(carried = false, None) == Fate.Held, "the driver has taken it")
  })

  test("a snapshot of a refused seal can be carried by a later one")(new Carrying {
    answer(FromDriver.Refused("stale", Vector("0/0")))
    task.giveUp()
    assert(snapshot.carry(1) == segments)
  })

  test("a snapshot whose task fails before its seal is sent can be carried by a later one")(new WorkerFixture {
    store.script("put", Fail())
    val task = newTask()
    write(task, 0, 5, 20)
    val failing = complete()
    task.carryFor("0/0", storeOf(failing, _ => ()))
    timer.advance(5000)
    failure(task.seal()): Unit
    assert(asks.isEmpty && failing.carry(1) == segments)
  })

  test("a snapshot of a seal with an unknown outcome is given up when the seal fails") {
    for (last <- Seq(FromDriver.Refused("closed", Vector.empty), FromDriver.NotCoordinated)) new Carrying {
      stayAway()
      timer.advance(1000)
      answer(last)
      assert(!snapshot.isUnderWay && snapshot.carry(1).isEmpty)
    }
  }
}
