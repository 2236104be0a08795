// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.IOException

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.runtime.{Cancellable, Latency, ManualTimer, RandomSource, TestRuntime, Timer}
import sparkdstl.log.storage.OperationKind

/** When attempts of a request begin and are aborted. */
class RequestsSuite extends AnyFunSuite {
  import RequestFixture._

  private val quick = fixed.copy(timeoutMillis = 100)
  private val large = RequestKind(OperationKind.Put, 60000000)

  test("a success of the first attempt ends the request and its timer")(new OneRequest {
    assert(running.outcome.isEmpty)
    running.attempts.succeed(1)
    assert(running.outcome.contains(Outcome.Done("answer 1")))
    assert(timer.pending == 0 && requests.underWay == 0)
    assert(!running.attempts.isCancelled(1))
  })

  test("at a start, errors that need an operator end a request within seconds") {
    val full = new IOException("mkdir of /checkpoint: No space left on device")
    for (isStarting <- Seq(true, false)) new OneRequest(starts = isStarting) {
      running.attempts.fail(1, full)
      timer.advance(500)
      running.attempts.fail(2, full)
      timer.advance(1000)
      running.attempts.fail(3, full)
      timer.advance(2000)
      assert(running.outcome.isEmpty && running.attempts.begun == 4)
      running.attempts.fail(4, full)
      if (isStarting) assert(running.outcome.exists { case Outcome.Done(_) => false; case _ => true })
      else assert(running.outcome.isEmpty)
    }
    new OneRequest(starts = true) {
      (1 to 6).foreach { attempt =>
        running.attempts.fail(attempt)
        timer.advance(hedged.retryDelayMillis(attempt, 0.5))
      }
      assert(running.outcome.isEmpty, "other errors pass")
    }
  }

  test("on storage that is slowed for a trial, each attempt begins after its delay, also a cancelled one") {
    // The test's random numbers make 16 ms of this median.
    new OneRequest(options = hedged.copy(slowness = Some(Latency.ofObjectStore(40)))) {
      timer.advance(15)
      assert(running.attempts.begun == 0)
      timer.advance(1)
      assert(running.attempts.begun == 1)
      timer.advance(984)
      requests.close()
      assert(running.attempts.isCancelled(1) && running.attempts.begun == 1)
      running.attempts.fail(1)
      assert(requests.underWay == 1)
      timer.advance(16)
      running.attempts.succeed(2)
      assert(requests.underWay == 0)
    }
  }

  test("half of the delays are longer than the median, and one in a hundred longer than six times the median") {
    val chance = new java.util.SplittableRandom(7)
    val random = new RandomSource {
      override def nextDouble(): Double = chance.nextDouble()
      override def nextUuid(): java.util.UUID = fail()
    }
    val delays = Seq.fill(100000)(Latency.ofObjectStore(40).millis(Latency.gaussian(random))).sorted
    assert(math.abs(delays(50000) - 40) < 1 && math.abs(delays(99000) - 240) < 12)
  }

  for ((name, options) <- Seq("hedged" -> hedged, "fixed" -> fixed)) {
    test(s"$name: a slow attempt is hedged, and the first success counts")(new OneRequest(options = options) {
      timer.advance(999)
      assert(running.attempts.begun == 1)
      timer.advance(1)
      assert(running.attempts.begun == 2)
      running.attempts.succeed(2)
      assert(running.outcome.contains(Outcome.Done("answer 2")))
      assert(running.attempts.isCancelled(1) && !running.attempts.isCancelled(2))
      assert(metrics().hedges.value == 1 && metrics().hedgesWon.value == 1 && metrics().retries.value == 0)
      assert(timer.pending == 0)
    })

    test(s"$name: at most three attempts run, and the oldest may still succeed")(new OneRequest(options = options) {
      timer.advance(500000)
      assert(running.attempts.begun - (1 to running.attempts.begun).count(running.attempts.isCancelled) == 3)
      running.attempts.succeed(1)
      assert(running.outcome.contains(Outcome.Done("answer 1")))
      assert(metrics().hedgesWon.value == 0)
    })

    test(s"$name: errors are retried until the deadline at growing delays")(new OneRequest(options = options) {
      for (attempt <- 1 to 40) {
        running.attempts.fail(attempt)
        assert(running.outcome.isEmpty)
        val delay = options.retryDelayMillis(attempt, 0.5)
        timer.advance(delay - 1)
        assert(running.attempts.begun == attempt)
        timer.advance(1)
        assert(running.attempts.begun == attempt + 1)
      }
      running.attempts.succeed(41)
      assert(running.outcome.contains(Outcome.Done("answer 41")))
      assert(metrics().retries.value == 40 && metrics().hedges.value == 0)
    })
  }

  // Attempts without an answer.

  test("an unanswered attempt is replaced at growing intervals")(new OneRequest(write, 60000, fixed) {
    val begun = (0 until 60).map { _ =>
      val before = running.attempts.begun
      timer.advance(1000)
      running.attempts.begun - before
    }
    assert(begun.indices.filter(begun(_) > 0).map(_ + 1) == Seq(1, 2, 4, 8, 16, 26, 36, 46, 56))
    assert(begun.max == 1)
    running.unknown
    assert(timer.pending == 0)
  })

  test("the error of an aborted attempt starts no further attempt")(new OneRequest {
    timer.advance(4000)
    running.attempts.fail(1, new java.io.InterruptedIOException("aborted"))
    timer.advance(3999)
    assert(running.attempts.begun == 4 && running.outcome.isEmpty)
  })

  test("the timeout of an attempt grows with the size of its object")(new OneRequest(large) {
    timer.advance(128000)
    // At 0, 1, 2, 4, 8, 16, 32, 64 and 128 s.
    assert(running.attempts.begun == 9)
    timer.advance(99999)
    assert(running.attempts.begun == 9)
    timer.advance(1)
    assert(running.attempts.begun == 10)
  })

  test("hedges do not reduce the number of retries")(new OneRequest {
    timer.advance(2000)
    assert(running.attempts.begun == 3)
    (1 to 3).foreach(running.attempts.fail(_))
    timer.advance(500)
    assert(running.attempts.begun == 4)
    running.attempts.succeed(4)
    assert(running.outcome.contains(Outcome.Done("answer 4")))
  })

  test("a request does not end while its next attempt is being started") {
    val timer = new TimerOfAnotherThread
    val requests = new Requests(hedged, TestRuntime(timer))
    val attempts = new ScriptedAttempts
    val pending = requests.run(write, "put of /x", 600000)(attempts)
    // Each attempt is registered under this lock, so the other thread waits there until the error is handled.
    requests.synchronized {
      timer.isDue = true
      attempts.fail(1, new IOException("lost"))
    }
    timer.finish()
    assert(attempts.begun == 2 && pending.value.isEmpty)
    attempts.succeed(2)
    assert(pending.value.map(_.get).contains(Outcome.Done("answer 2")))
  }

  test("a retry waits for its delay even if a hedge would be due")(new OneRequest(options = quick) {
    running.attempts.fail(1)
    timer.advance(499)
    assert(running.attempts.begun == 1)
    timer.advance(1)
    assert(running.attempts.begun == 2)
  })

  test("without retries an attempt runs until the deadline, and an error ends the request")(new RequestFixture(none) {
    val unanswered = run()
    timer.advance(500000)
    assert(unanswered.attempts.begun == 1)
    unanswered.attempts.succeed(1)
    assert(unanswered.outcome.contains(Outcome.Done("answer 1")))
    val failing = run(read)
    failing.attempts.fail(1)
    assert(failing.failure.getMessage.contains("injected"))
  })

  // Hedges.

  test("a hedge starts when an attempt is slower than recent ones of its kind and size")(new RequestFixture {
    observe(RequestOptions.MinSamples, 40)
    val other = run(RequestKind(OperationKind.Put, 1000000))
    val running = run()
    timer.advance(79)
    assert(running.attempts.begun == 1)
    timer.advance(1)
    assert(running.attempts.begun == 2 && other.attempts.begun == 1)
  })

  test("the hedge budget limits early attempts but not attempts after the timeout")(new RequestFixture {
    observe(100, 40)
    val all = (1 to 100).map(_ => run())
    timer.advance(999)
    // The budget holds ten hedges at most, also after a hundred requests.
    assert(metrics().hedges.value == 10)
    timer.advance(1)
    assert(all.forall(_.attempts.begun >= 2))
  })

  test("each storage has its own hedge budget") {
    val (histories, timer) = (new StorageHistories, new ManualTimer)
    def on(path: String) = new RequestFixture(history = histories.of(new Path(path)), timer = timer)
    val (slow, again, healthy) = (on("s3a://slow/a"), on("s3a://slow/b"), on("s3a://healthy/a"))
    Seq(slow, healthy).foreach(_.observe(100, 40))
    (1 to 100).foreach(_ => slow.run())
    timer.advance(900)
    val (sameSlow, other) = (again.run(), healthy.run())
    timer.advance(90)
    assert(slow.metrics().hedges.value == 10 && sameSlow.attempts.begun == 1 && other.attempts.begun == 2)
  }

  test("cancelled attempts count with the time that they ran")(new RequestFixture {
    observe(RequestOptions.MinSamples, 40)
    for (_ <- 1 to 10) {
      val running = run()
      timer.advance(90)
      running.attempts.succeed(2)
      running.attempts.fail(1, new IOException("cancelled"))
    }
    val running = run()
    timer.advance(89)
    assert(running.attempts.begun == 1)
    timer.advance(1)
    assert(running.attempts.begun == 2)
  })

  test("requests are counted by operation, with their latencies")(new RequestFixture {
    observe(10, 30, read)
    val reads = metrics(read)
    assert(reads.requests.value == 10 && reads.attempts.value == 10 &&
      reads.latency.snapshot().percentileNanos(0.99) == 30000000)
    assert(metrics(write).requests.value == 0)
  })
}

/** Runs a due action at once on another thread, and returns when that thread has ended or waits for a lock. */
private final class TimerOfAnotherThread extends Timer {
  @volatile var isDue = false
  private var thread = Option.empty[Thread]

  @volatile private var now = 0L

  override def nowNanos: Long = now

  override def schedule(delayMillis: Long)(action: () => Unit): Cancellable = {
    if (isDue) {
      isDue = false
      now += delayMillis * 1000000
      val other = new Thread(() => action(), "timer")
      thread = Some(other)
      other.start()
      while (other.getState != Thread.State.BLOCKED && other.getState != Thread.State.TERMINATED) Thread.onSpinWait()
    }
    () => ()
  }

  def finish(): Unit = thread.foreach(_.join())
}
