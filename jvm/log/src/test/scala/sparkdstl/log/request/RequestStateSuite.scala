// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.{FileNotFoundException, IOException}

import org.apache.hadoop.security.AccessControlException
import org.scalacheck.{Gen, Prop, Test}
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.storage.OperationKind

/** The states of a request and its attempts under any sequence of answers, errors and delays. */
class RequestStateSuite extends AnyFunSuite {
  import AttemptState._
  import RequestStateSuite._

  test("an attempt allows exactly the transitions of the table") {
    val ends = Seq(Succeeded, Refused, Unanswered)
    val table = Map[AttemptState, Seq[AttemptState]](Running -> (Aborted +: ends), Aborted -> ends)
    for (from <- AttemptState.all; to <- AttemptState.all)
      if (table.getOrElse(from, Nil).contains(to)) assert(from.next(to) == to)
      else intercept[IllegalStateException](from.next(to))
  }

  test("a request has one outcome and begins no attempt after it") {
    val decided =
      RequestState(RequestKind(OperationKind.Read), options).begin(AttemptReason.First, 0, Some(1)).decided(5)
    intercept[IllegalStateException](decided.decided(6))
    intercept[IllegalStateException](decided.begin(AttemptReason.Retry, 6, None))
    assert(decided.wakeNanos.isEmpty && decided.attempts.head.state == Aborted)
  }

  private val event: Gen[Event] = Gen.frequency(
    4 -> Gen.choose(1L, 20000L).map(Time(_)),
    1 -> Gen.zip(Gen.choose(0, 9), error).map { case (choice, error) => Answer(choice, error) }
  )

  private def error: Gen[Option[Throwable]] = Gen.frequency(
    1 -> None,
    5 -> Some(new IOException("reset")),
    5 -> Some(new FileNotFoundException("no bucket")),
    1 -> Some(new AccessControlException("denied"))
  )

  private val kind = Gen.oneOf(
    RequestKind(OperationKind.Read),
    RequestKind(OperationKind.Put),
    RequestKind(OperationKind.Replace, 1, concurrent = false)
  )

  private def holds(name: String)(check: Driven => Boolean): Unit = test(name) {
    val property = Prop.forAll(kind, Gen.listOfN(60, event)) { (kind, events) =>
      Driven(RequestState(kind, options).begin(AttemptReason.First, 0, Some(100))).run(events).forall(check)
    }
    assert(Test.check(Test.Parameters.default.withMinSuccessfulTests(500), property).passed)
  }

  holds("the number of running attempts is bounded") { driven =>
    driven.state.attempts.count(_.state == Running) <= options.maxAttempts
  }

  holds("a write fails only if storage refuses all of its attempts") { driven =>
    val isFailed = driven.outcome.exists(_.isInstanceOf[Outcome.Failed])
    !isFailed || !driven.state.kind.isWrite || driven.state.attempts.forall(_.state == Refused)
  }

  holds("a read is never unknown")(driven =>
    driven.state.kind.isWrite || !driven.outcome.exists(_.isInstanceOf[Outcome.Unknown])
  )

  holds("another attempt is due before the deadline unless the request may not repeat") { driven =>
    val isTrying = driven.state.phase == RequestPhase.Trying && driven.state.kind.concurrent
    // No retry is due after the deadline.
    val isLate = driven.nowNanos > deadlineNanos - 20 * 1000000000L
    !isTrying || isLate || driven.state.wakeNanos.isDefined
  }

  holds("an attempt that may not overlap begins only after storage has refused all earlier ones") { driven =>
    driven.state.kind.concurrent || driven.state.attempts.dropRight(1).forall(_.state == Refused)
  }

  holds("no attempt is due after a definite refusal or an outcome") { driven =>
    driven.state.phase == RequestPhase.Trying || driven.state.wakeNanos.isEmpty
  }

  test("the oldest attempts are aborted, and the newest keep running") {
    val begun = (1 to 5).foldLeft(RequestState(RequestKind(OperationKind.Read), options)) { (state, number) =>
      state.begin(if (number == 1) AttemptReason.First else AttemptReason.Slow, number.toLong, None)
    }
    assert(begun.attempts.map(_.state) == Seq(Aborted, Aborted, Running, Running, Running))
    assert(begun.attempts.flatMap(_.abortedNanos) == Seq(4, 5))
  }
}

private object RequestStateSuite {
  val options: RequestOptions = RequestFixture.hedged
  val deadlineNanos: Long = 600 * 1000000000L

  /** The next event of a request; the number of attempts under way decides which attempt it concerns. */
  sealed trait Event
  final case class Time(millis: Long) extends Event
  final case class Answer(choice: Int, error: Option[Throwable]) extends Event

  /** A request with its clock, driven like a [[RunningRequest]]. */
  final case class Driven(state: RequestState, nowNanos: Long = 0, outcome: Option[Outcome[Int]] = None) {

    def run(events: Seq[Event]): Seq[Driven] = events.scanLeft(this)(_.after(_))

    private def after(event: Event): Driven = event match {
      case _ if outcome.isDefined => this
      case Time(millis) => copy(nowNanos = nowNanos + millis * 1000000).awake
      case Answer(choice, error) =>
        val underWay = state.attempts.indices.filter(state.attempts(_).state.isUnderWay)
        if (underWay.isEmpty) this
        else {
          val number = underWay(choice % underWay.size) + 1
          error match {
            case None => decided(Outcome.Done(number), state.succeeded(number))
            case Some(error) =>
              val failed = state.failed(number, error, nowNanos, deadlineNanos, 0.5)
              failed.conclusion("it").fold(copy(state = failed))(decided(_, failed))
          }
        }
    }

    private def awake: Driven = state.due(nowNanos, () => true) match {
      case _ if nowNanos >= deadlineNanos => decided(state.interrupted(_ => new IOException("deadline")), state)
      case Left(waiting) => copy(state = waiting)
      case Right(reason) => copy(state = state.begin(reason, nowNanos, Some(100)))
    }

    private def decided(outcome: Outcome[Int], last: RequestState): Driven =
      copy(state = last.decided(nowNanos), outcome = Some(outcome))
  }
}
