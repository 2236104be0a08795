// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.metrics.{Latencies, LatencyWindow}
import sparkdstl.log.config.RetryPolicy

class RequestOptionsSuite extends AnyFunSuite {
  import RequestFixture.hedged
  private def observed(millis: Seq[Long]): Latencies = {
    val window = new LatencyWindow(200)
    millis.foreach(ms => window.record(ms * 1000000))
    window.snapshot()
  }

  test("percentiles cover the last latencies only") {
    val window = new LatencyWindow(100)
    assert(window.snapshot().percentileNanos(0.95) == 0)
    (1 to 1000).foreach(n => window.record(n.toLong))
    val latencies = window.snapshot()
    assert(latencies.count == 100)
    assert(latencies.percentileNanos(0.5) == 950)
    assert(latencies.percentileNanos(0.95) == 995)
    assert(latencies.percentileNanos(1) == 1000)
    assert(latencies.percentileNanos(0) == 901)
  }

  test("a hedge waits for the whole timeout until enough latencies are known") {
    assert(hedged.hedgeMillis(observed(Nil)) == Some(1000L))
    assert(hedged.hedgeMillis(observed(Seq.fill(19)(1L))) == Some(1000L))
  }

  test("a hedge waits for the 95th percentile") {
    assert(hedged.hedgeMillis(observed(Seq.fill(90)(40L) ++ Seq.fill(10)(250L))) == Some(250L))
  }

  test("a hedge waits at least for twice the median and for the floor") {
    assert(hedged.hedgeMillis(observed(Seq.fill(100)(40L))) == Some(80L))
    assert(hedged.hedgeMillis(observed(Seq.fill(100)(1L))) == Some(RequestOptions.FloorMillis))
  }

  test("a hedge never waits longer than the timeout") {
    assert(hedged.hedgeMillis(observed(Seq.fill(100)(4000L))) == Some(1000L))
  }

  test("the fixed policy hedges at its timeout, and the policy without retries never does") {
    assert(hedged.copy(policy = RetryPolicy.Fixed).hedgeMillis(observed(Seq.fill(100)(1L))) == Some(1000L))
    assert(hedged.copy(policy = RetryPolicy.NoRetry).hedgeMillis(observed(Nil)).isEmpty)
  }

  test("the delay after an error doubles up to ten seconds and has jitter in both directions") {
    assert((1 to 7).map(hedged.retryDelayMillis(_, 0.5)) == Seq(500, 1000, 2000, 4000, 8000, 10000, 10000))
    assert(hedged.retryDelayMillis(1, 0) == 250 && hedged.retryDelayMillis(1, 1) == 750)
    assert(hedged.retryDelayMillis(1000000, 0.5) == 10000)
  }

  test("a delay of zero grows, and a delay above ten seconds stays constant") {
    assert((1 to 3).map(hedged.copy(nextAttemptDelayMillis = 0).retryDelayMillis(_, 0.5)) == Seq(1, 2, 4))
    assert((1 to 2).map(hedged.copy(nextAttemptDelayMillis = 60000).retryDelayMillis(_, 0.5)) == Seq(60000, 60000))
  }

  test("the hedge budget allows one in ten requests after the first ten hedges") {
    val budget = new HedgeBudget
    assert((1 to 12).map(_ => budget.take()) == Seq.fill(10)(true) ++ Seq.fill(2)(false))
    (1 to 9).foreach(_ => budget.earn())
    assert(!budget.take())
    budget.earn()
    assert(budget.take() && !budget.take())
    (1 to 1000).foreach(_ => budget.earn())
    assert((1 to 12).count(_ => budget.take()) == 10)
  }
}
