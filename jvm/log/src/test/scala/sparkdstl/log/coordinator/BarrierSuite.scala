// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.attempts.{AttemptLedger, InlineBudget}
import sparkdstl.log.format.FormatSamples
import sparkdstl.log.runtime.{CountedNames, ManualTimer, ProtocolRuntime}
import sparkdstl.log.transport.RunId
import sparkdstl.testing.Completed.{failure, result}

class BarrierSuite extends AnyFunSuite {

  private def barrierOf(ledger: AttemptLedger, timer: ManualTimer, executor: ExecutionContext): Barrier = new Barrier(
    RunId("memory:/checkpoint", FormatSamples.someRun),
    ledger,
    (_, _, _) => Future.unit,
    new ProtocolRuntime(timer, new CountedNames, executor)
  )

  test("a batch that was settled in time is not late because the driver was paused") {
    val pending = mutable.Queue.empty[Runnable]
    val paused = new ExecutionContext {
      override def execute(work: Runnable): Unit = pending += work
      override def reportFailure(error: Throwable): Unit = throw error
    }
    val timer = new ManualTimer
    val barrier = barrierOf(new AttemptLedger(new InlineBudget(1000)), timer, paused)
    barrier.close(0, Set.empty, Nil)
    val segments = barrier.await(0, 60000)
    timer.advance(60000)
    while (pending.nonEmpty) pending.dequeue().run()
    assert(result(segments).isEmpty)
  }

  test("the waits of earlier batches leave nothing behind, and the end fails the present and later ones") {
    var continued = 0
    val counting = new ExecutionContext {
      override def execute(work: Runnable): Unit = {
        continued += 1
        work.run()
      }
      override def reportFailure(error: Throwable): Unit = throw error
    }
    val ledger = new AttemptLedger(new InlineBudget(1000))
    val barrier = barrierOf(ledger, new ManualTimer, counting)
    (0L to 999L).foreach { batch =>
      barrier.close(batch, Set.empty, Nil)
      result(barrier.await(batch, 60000))
      ledger.committed(batch)
    }
    continued = 0
    val error = new IllegalStateException("for this test")
    barrier.end(error)
    assert(continued < 10)
    barrier.close(1000, Set.empty, Nil)
    assert(failure(barrier.await(1000, 60000)) eq error)
  }
}
