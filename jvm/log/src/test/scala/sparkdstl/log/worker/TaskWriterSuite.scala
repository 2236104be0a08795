// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import java.util.concurrent.CancellationException

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.error.{FencedException, ProtocolErrors, SealRefusedException}
import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.request.ScriptedStore.{Fail, Hang}
import sparkdstl.log.transport.{FromDriver, SealedPart, ToDriver}

class TaskWriterSuite extends AnyFunSuite {
  import Completed._

  private val accepted = FromDriver.Accepted(None)

  private def inlineLengths(seal: ToDriver.Seal): Seq[Long] =
    seal.segments.flatMap(_.parts).collect { case SealedPart.Inline(bytes) => bytes.length.toLong }

  private def pending(seal: ToDriver.Seal): Int =
    seal.segments.flatMap(_.parts).count(_.isInstanceOf[SealedPart.Pending])

  /** A task that has sent the seal of one segment, whose last `length` bytes are not uploaded. */
  private class Sealed(length: Int, chunks: Int*) extends WorkerFixture {
    val task = newTask()
    write(task, 0, length, chunks: _*)
    val seal = task.seal()
  }

  test("a task seals all segments in one ask, with small ones inline within its share")(new WorkerFixture {
    val task = newTask(share = 12)
    Seq(11, 8, 3, 6).zipWithIndex.foreach { case (length, partition) => write(task, partition, length) }
    val seal = task.seal()
    assert(inlineLengths(seals.head).sorted == Seq(3, 6))
    assert(pending(seals.head) == 2)
    answer(accepted)
    result(seal)
    assert(asks.size == 1)
    timer.advance(5000)
    answer(FromDriver.Noted)
    assert(told.count(_._2.isRight) == 2)
    assert(objects.size == 1)
  })

  test("an unanswered seal is repeated until the commit's deadline and then withdrawn")(new Sealed(11) {
    stayAway()
    timer.advance(500)
    assert(seals.size == 2)
    stayAway()
    timer.advance(1000)
    assert(seals.size == 3)
    // The link never answers from here on.
    timer.advance(60000)
    assert(failure(seal).getMessage.contains("DSTL_SEAL_UNANSWERED"))
    assert(withdrawals == 1 && objects.size == 1)
    answer(FromDriver.Withdrawal(false))
    assert(objects.isEmpty)
  })

  test("the uploads of an attempt that may be committed are kept and reported")(new Sealed(11) {
    task.giveUp()
    assert(failure(seal).isInstanceOf[CancellationException])
    answer(FromDriver.Withdrawal(true))
    timer.advance(5000)
    assert(objects.size == 1 && told.size == 1)
    // A late answer to the seal changes nothing.
    asks.head._2.success(accepted)
    assert(asks.count(_._1.isInstanceOf[ToDriver.Uploaded]) == 1)
  })

  test("a task that is given up before its seal discards its uploads without an ask")(new WorkerFixture {
    val task = newTask()
    write(task, 0, 3, 20)
    timer.advance(5000)
    assert(objects.size == 1)
    task.giveUp()
    assert(asks.isEmpty && objects.isEmpty)
  })

  test("a task that is given up while it waits for memory seals nothing")(new WorkerFixture(maxInFlight = 20) {
    store.always("put", new Hang)
    val task = newTask()
    write(task, 0, 11, 20)
    val seal = task.seal()
    assert(seals.isEmpty && !seal.isCompleted)
    task.giveUp()
    assert(withdrawals == 1)
    answer(FromDriver.Withdrawal(false))
    timer.advance(120000)
    assert(seals.isEmpty)
    assert(failure(seal).isInstanceOf[CancellationException])
  })

  test("inline bytes beyond the driver's memory are uploaded and sealed again")(new Sealed(5) {
    answer(FromDriver.OverBudget)
    assert(pending(seals(1)) == 1 && inlineLengths(seals(1)).isEmpty)
    answer(accepted)
    result(seal)
  })

  test("an attempt that fails after an unanswered ask is withdrawn")(new Sealed(5, 20) {
    stayAway()
    timer.advance(500)
    store.script("put", Fail())
    worker.flush()
    answer(FromDriver.OverBudget)
    assert(seal.value.exists(_.isFailure))
    assert(withdrawals == 1)
  })

  test("an upload that fails before the seal fails the task without an ask")(new WorkerFixture {
    store.script("put", Fail())
    val task = newTask()
    write(task, 0, 5, 20)
    timer.advance(5000)
    val seal = task.seal()
    assert(failure(seal).getMessage.contains("cannot upload"))
    assert(asks.isEmpty)
  })

  test("an upload that fails after the seal is reported to the driver")(new Sealed(11) {
    store.script("put", Fail())
    answer(accepted)
    worker.flush()
    assert(told.map(_._2.isLeft) == Seq(true))
  })

  test("a refused seal is discarded if it was the only ask and withdrawn otherwise")(new WorkerFixture {
    val refusal = FromDriver.Refused("stale", Vector("0/0"))
    val once = newTask(1)
    write(once, 0, 11)
    val first = once.seal()
    worker.flush()
    assert(objects.size == 1)
    answer(refusal)
    assert(failure(first).asInstanceOf[SealRefusedException].stale == Vector("0/0"))
    assert(withdrawals == 0 && objects.isEmpty)
    val twice = newTask(2)
    write(twice, 0, 11)
    val second = twice.seal()
    stayAway()
    timer.advance(500)
    answer(refusal)
    assert(failure(second).isInstanceOf[SealRefusedException])
    assert(withdrawals == 1)
  })

  test("a task whose batch was not planned fails with the error of the plan, and discards its uploads") {
    val error = ProtocolErrors.begunByOther(new Path("memory:/checkpoint/offsets/3"), None)
    new Sealed(11) {
      // The driver may have accepted the first send, and commits it never.
      stayAway()
      timer.advance(500)
      answer(FromDriver.NotPlanned.of(error))
      assert(failure(seal).isInstanceOf[FencedException])
      assert(failure(seal).getMessage == error.getMessage)
      assert(withdrawals == 0 && objects.isEmpty)
    }
    new Sealed(1) {
      answer(FromDriver.NotPlanned.of(new IllegalStateException("closed")))
      assert(failure(seal).getMessage.contains("[DSTL_WRITE_FAILED]"))
      assert(failure(seal).getMessage.contains("closed"))
    }
  }

  test("a segment that ends after its task's seal is an error")(new WorkerFixture {
    val task = newTask()
    val segment = task.segment(SegmentKey(0, 0, "", 1, None, SegmentKind.Changelog), None)
    result(task.seal())
    assertThrows[IllegalStateException](task.end(segment, Array[Byte](1)))
    assertThrows[IllegalStateException](task.segment(segment.key, None))
  })

  test("unanswered upload reports are sent again")(new Sealed(11) {
    answer(accepted)
    worker.flush()
    assert(told.size == 1)
    val before = asks.size
    timer.advance(61000)
    assert(asks.size > before && told.distinct.size == 1 && !worker.isIdle)
    answer(FromDriver.Noted)
    assert(worker.isIdle)
    val after = asks.size
    timer.advance(600000)
    assert(asks.size == after)
  })

  test("an unwanted upload is discarded, and its file is deleted with the last wanted chunk")(
    new WorkerFixture {
      val task = newTask(1)
      write(task, 0, 11)
      task.seal(): Unit
      answer(accepted)
      val other = newTask(2)
      write(other, 1, 11)
      other.seal(): Unit
      answer(accepted)
      worker.flush()
      val tickets = told.map(_._1).distinct
      assert(told.size == 1, "the second waits for the answer to the first")
      answer(FromDriver.Unwanted(tickets.toVector))
      assert(objects.size == 1, "the other chunk is wanted")
      answer(FromDriver.Unwanted(told.map(_._1).toVector))
      assert(objects.isEmpty)
    }
  )

  test("an upload whose place the accepted seal names stays even if its ticket is unwanted")(new WorkerFixture {
    val task = newTask()
    write(task, 0, 11)
    write(task, 1, 5)
    task.seal(): Unit
    worker.flush()
    answer(FromDriver.OverBudget)
    assert(pending(seals(1)) == 1, "the second seal names the first upload by its place")
    answer(accepted)
    val before = objects
    answer(FromDriver.Unwanted(told.map(_._1).toVector))
    assert(before.size == 1 && objects == before)
  })
}
