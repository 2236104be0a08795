// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import scala.concurrent.{Future, Promise}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed.result

class ProtocolRuntimeSuite extends AnyFunSuite {
  private val timer = new ManualTimer
  private val runtime = TestRuntime(timer)

  test("a result counts until its time is over") {
    val (early, late) = (Promise[Int](), Promise[Int]())
    val answers = Seq(early, late).map(of => runtime.within(10, of.future)(-1))
    early.success(1)
    assert(result(answers.head) == 1 && !answers.last.isCompleted)
    timer.advance(10)
    late.success(2)
    assert(result(answers.last) == -1)
    assert(timer.pending == 0)
  }

  test("without a timer only a result that is there counts") {
    val stopped = TestRuntime(StoppedTimer)
    assert(result(stopped.within(10, Future.successful(1))(-1)) == 1)
    assert(result(stopped.within(10, Promise[Int]().future)(-1)) == -1)
  }
}
