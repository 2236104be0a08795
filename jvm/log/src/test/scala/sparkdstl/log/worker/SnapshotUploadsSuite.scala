package sparkdstl.log.worker

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.request.ScriptedStore.Hang
import sparkdstl.log.transport.{FromDriver, SealedPart, SealedSegment, ToDriver}

class SnapshotUploadsSuite extends AnyFunSuite {
  import WorkerFixture._

  private val zip = SegmentKey(0, 0, "", 1, None, SegmentKind.Snapshot)
  private val offered = Vector(SealedSegment(zip, None, Vector(SealedPart.Inline(Array[Byte](1)))))

  private def uploads(fixture: WorkerFixture): SnapshotUploads = {
    fixture.task(): Unit
    fixture.answers = PartialFunction.empty
    result(fixture.worker.snapshotUploads()).get
  }

  private def offers(fixture: WorkerFixture): Int = fixture.asks.count(_._1.isInstanceOf[ToDriver.OfferSnapshot])

  test("an offer is made until a commit entry holds the snapshot, ever less often") {
    val fixture = new WorkerFixture
    import fixture._
    val offer = uploads(fixture).offer(7, offered)
    answer(FromDriver.NotYet)
    timer.advance(499)
    assert(offers(fixture) == 1)
    timer.advance(1)
    answer(FromDriver.Noted)
    timer.advance(1000)
    answer(FromDriver.Noted)
    timer.advance(1999)
    assert(offers(fixture) == 3 && !offer.isCompleted)
    timer.advance(1)
    answer(FromDriver.SnapshotHeld)
    assert(result(offer) == Offered.Held && offers(fixture) == 4)
  }

  test("one that is refused was never taken, unless the driver has been silent or had taken it") {
    def refusedAfter(before: WorkerFixture => Unit): Offered = {
      val fixture = new WorkerFixture
      val offer = uploads(fixture).offer(7, offered)
      before(fixture)
      fixture.answer(FromDriver.SnapshotRefused("no", Vector("gone")))
      result(offer)
    }
    assert(refusedAfter(_ => ()) == Offered.Refused("no", Set("gone"), isCertain = true))
    assert(refusedAfter { fixture =>
      fixture.answer(FromDriver.NotYet)
      fixture.timer.advance(500)
    } == Offered.Refused("no", Set("gone"), isCertain = true))
    assert(refusedAfter { fixture =>
      fixture.answer(FromDriver.Noted)
      fixture.timer.advance(500)
    } == Offered.Refused("no", Set("gone"), isCertain = false))
    assert(refusedAfter { fixture =>
      fixture.stayAway()
      fixture.timer.advance(1000)
    } == Offered.Refused("no", Set("gone"), isCertain = false))
  }

  test("nobody knows what came of an offer when the run has ended") {
    for (ending <- Seq(FromDriver.Superseded, FromDriver.NotCoordinated)) {
      val fixture = new WorkerFixture
      val offer = uploads(fixture).offer(7, offered)
      fixture.answer(ending)
      assert(result(offer) == Offered.Ended)
    }
    val fixture = new WorkerFixture
    val offer = uploads(fixture).offer(7, offered)
    result(fixture.worker.close())
    fixture.answer(FromDriver.Noted)
    assert(result(offer) == Offered.Ended)
  }

  test("a chunk waits while changes are being uploaded, but not for ever, and goes to a file apart") {
    val fixture = new WorkerFixture
    import fixture._
    val task = fixture.task(share = 0)
    val hang = new Hang
    store.script("put", hang)
    write(task, partition = 0, length = 5)
    task.seal(): Unit
    worker.flush()
    val of = result(worker.snapshotUploads()).get
    val chunk = of.put(zip, new Array[Byte](10))
    timer.advance(9000)
    assert(!chunk.isCompleted)
    timer.advance(2000)
    assert(chunk.isCompleted)
    timer.advance(5000)
    assert(result(result(chunk).location).file.endsWith("-snapshots.log"))
    val other = of.put(zip, new Array[Byte](10))
    assert(!other.isCompleted)
    hang.release()
    timer.advance(50)
    assert(other.isCompleted)
  }
}
