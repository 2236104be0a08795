package sparkdstl.log.retry

import org.scalatest.funsuite.AnyFunSuite

class RetryPolicySuite extends AnyFunSuite {
  private val hedged = RetryPolicy.Hedged(maxAttempts = 3, timeoutMillis = 1000, nextAttemptDelayMillis = 500)

  private def observed(millis: Seq[Long]): Latencies = {
    val window = new LatencyWindow(200)
    millis.foreach(ms => window.record(ms * 1000000))
    window.snapshot()
  }

  test("percentiles are of the last latencies only") {
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

  test("while little is known a hedge waits for the whole timeout") {
    assert(hedged.silenceMillis(observed(Nil)) == Some(1000L))
    assert(hedged.silenceMillis(observed(Seq.fill(19)(1L))) == Some(1000L))
  }

  test("a hedge waits for the 95th percentile") {
    assert(hedged.silenceMillis(observed(Seq.fill(90)(40L) ++ Seq.fill(10)(250L))) == Some(250L))
  }

  test("a hedge waits for twice the median at least, and never less than the floor") {
    assert(hedged.silenceMillis(observed(Seq.fill(100)(40L))) == Some(80L))
    assert(hedged.silenceMillis(observed(Seq.fill(100)(1L))) == Some(RetryPolicy.Hedged.FloorMillis))
  }

  test("a hedge never waits longer than the timeout") {
    assert(hedged.silenceMillis(observed(Seq.fill(100)(4000L))) == Some(1000L))
  }

  test("a fixed policy waits for its timeout, and no retries for ever") {
    assert(RetryPolicy.Fixed(3, 1000, 500).silenceMillis(observed(Seq.fill(100)(1L))) == Some(1000L))
    assert(RetryPolicy.NoRetries.silenceMillis(observed(Nil)).isEmpty)
  }
}
