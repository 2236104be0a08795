// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import java.io.IOException

import scala.concurrent.{Future, Promise}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.format.FormatSamples
import sparkdstl.log.runtime.{ManualTimer, StoppedTimer, TestRuntime}
import sparkdstl.log.transport.{DriverLink, FromDriver, RunId, ToDriver}

class AskUntilAnsweredSuite extends AnyFunSuite {
  private val run = RunId("memory:/checkpoint", FormatSamples.someRun)

  private class Fixture(timer: ManualTimer = new ManualTimer)(answer: Int => Future[FromDriver]) {
    var asked = 0
    val time: ManualTimer = timer
    private val link: DriverLink = (_, _, _) => {
      asked += 1
      answer(asked)
    }
    val ask = new AskUntilAnswered(link, "1", run, TestRuntime(timer))
  }

  test("an ask is repeated at growing intervals until it is answered, and counts its timeouts") {
    val fixture = new Fixture()(count =>
      if (count < 4) Future.failed(new IOException("no answer")) else Future.successful(FromDriver.Noted)
    )
    val answer = fixture.ask(ToDriver.Open, 60000)
    Seq(500L -> 2, 999L -> 2, 1L -> 3, 2000L -> 4).foreach { case (millis, asked) =>
      fixture.time.advance(millis)
      assert(fixture.asked == asked)
    }
    assert(Completed.result(answer) == AskUntilAnswered.Answer(FromDriver.Noted, 3))
    assert(fixture.time.pending == 0)
  }

  test("an ask ends by its deadline even if the link never answers") {
    val fixture = new Fixture()(_ => Promise[FromDriver]().future)
    val answer = fixture.ask(ToDriver.Open, 60000)
    fixture.time.advance(59999)
    assert(!answer.isCompleted)
    fixture.time.advance(1)
    assert(answer.value.exists(_.isFailure))
  }

  test("a link that throws counts as unanswered") {
    val fixture = new Fixture()(count =>
      if (count < 3) throw new IllegalStateException("stopped") else Future.successful(FromDriver.Noted)
    )
    val answer = fixture.ask(ToDriver.Open, 60000)
    fixture.time.advance(5000)
    assert(Completed.result(answer).timeouts == 2)
  }

  test("an ask that is no longer wanted is not repeated") {
    val fixture = new Fixture()(_ => Future.failed(new IOException("no answer")))
    var wanted = true
    val answer = fixture.ask(ToDriver.Open, 60000, () => wanted)
    wanted = false
    fixture.time.advance(500)
    assert(fixture.asked == 2 && answer.value.exists(_.isFailure))
  }

  test("an ask fails when the timer has stopped") {
    val link: DriverLink = (_, _, _) => Future.failed(new IOException("no answer"))
    val ask = new AskUntilAnswered(link, "1", run, TestRuntime(StoppedTimer))
    assert(ask(ToDriver.Open, 60000).value.exists(_.isFailure))
  }
}
