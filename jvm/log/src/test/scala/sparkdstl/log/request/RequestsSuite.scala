// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.{FileNotFoundException, IOException}

import scala.concurrent.Future

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.RetryPolicy
import sparkdstl.log.error.DstlException
import sparkdstl.log.runtime.{Cancellable, ManualTimer, StoppedTimer, TestRuntime, Timer}
import sparkdstl.log.storage.{Attempt, OperationKind}

class RequestsSuite extends AnyFunSuite {
  private val hedged = RequestOptions(RetryPolicy.Hedged, 1000, maxAttempts = 3, nextAttemptDelayMillis = 500)
  private val fixed = hedged.copy(policy = RetryPolicy.Fixed)
  private val quick = fixed.copy(timeoutMillis = 100)
  private val none = hedged.copy(policy = RetryPolicy.NoRetry)

  private val write = RequestKind(OperationKind.Put)
  private val read = RequestKind(OperationKind.Read)
  private val large = RequestKind(OperationKind.Put, 60000000)
  private val cautious = RequestKind(OperationKind.Replace, 1, concurrent = false)

  private val denied = new AccessControlException("denied")

  private class Fixture(
      options: RequestOptions = hedged,
      history: StorageHistory = new StorageHistory,
      val timer: ManualTimer = new ManualTimer
  ) {
    val requests = new Requests(options, TestRuntime(timer), new RequestMetrics, history)

    final class Running(kind: RequestKind, timeoutMillis: Long) {
      val attempts = new ScriptedAttempts
      val pending: Future[Outcome[String]] = requests.run(kind, "put of /x", timeoutMillis)(attempts)

      def outcome: Option[Outcome[String]] = pending.value.map(_.get)

      def failure: Throwable = outcome match {
        case Some(Outcome.Failed(error)) => error
        case other => fail(s"not failed: $other")
      }

      def unknown: Throwable = outcome match {
        case Some(Outcome.Unknown(cause)) => cause
        case other => fail(s"not unknown: $other")
      }
    }

    def run(kind: RequestKind = write, timeoutMillis: Long = 600000): Running = new Running(kind, timeoutMillis)

    /** Runs `count` requests in sequence that take `millis` each. */
    def observe(count: Int, millis: Long, kind: RequestKind = write): Unit = (1 to count).foreach { _ =>
      val running = run(kind)
      timer.advance(millis)
      running.attempts.succeed(1)
    }

    def metrics(kind: RequestKind = write): RequestCounters = requests.metrics.of(kind.operation)
  }

  /** A fixture with one request under way. */
  private class One(kind: RequestKind = write, timeoutMillis: Long = 600000, options: RequestOptions = hedged)
      extends Fixture(options) {
    val running = run(kind, timeoutMillis)
  }

  test("a success of the first attempt ends the request and its timer")(new One {
    assert(running.outcome.isEmpty)
    running.attempts.succeed(1)
    assert(running.outcome.contains(Outcome.Done("answer 1")))
    assert(timer.pending == 0 && requests.underWay == 0)
    assert(!running.attempts.isCancelled(1))
  })

  for ((name, options) <- Seq("hedged" -> hedged, "fixed" -> fixed)) {
    test(s"$name: a slow attempt is hedged, and the first success counts")(new One(options = options) {
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

    test(s"$name: concurrent attempts are bounded, and the oldest may still succeed")(new One(options = options) {
      timer.advance(500000)
      assert(running.attempts.begun - (1 to running.attempts.begun).count(running.attempts.isCancelled) == 3)
      running.attempts.succeed(1)
      assert(running.outcome.contains(Outcome.Done("answer 1")))
      assert(metrics().hedgesWon.value == 0)
    })

    test(s"$name: errors are retried until the deadline at growing delays")(new One(options = options) {
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

  test("an unanswered attempt is replaced at growing intervals")(new One(write, 60000, fixed) {
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

  test("each new attempt beyond the limit aborts the oldest one")(new One {
    timer.advance(3999)
    assert(running.attempts.begun == 3 && !(1 to 3).exists(running.attempts.isCancelled))
    timer.advance(1)
    assert(running.attempts.begun == 4 && (1 to 4).filter(running.attempts.isCancelled) == Seq(1))
    timer.advance(4000)
    assert(running.attempts.begun == 5 && (1 to 5).filter(running.attempts.isCancelled) == Seq(1, 2))
    running.attempts.succeed(5)
    assert(running.outcome.contains(Outcome.Done("answer 5")))
  })

  test("an aborted attempt leaves the outcome of a write unknown") {
    for (ends <- Seq(true, false)) {
      val f = new Fixture
      val running = f.run(timeoutMillis = 10000)
      f.timer.advance(4000)
      if (ends) running.attempts.fail(1, new java.io.InterruptedIOException("aborted"))
      (2 to 4).foreach(running.attempts.fail(_, new FileNotFoundException("no bucket")))
      f.timer.advance(1000)
      assert(running.outcome.isEmpty)
      running.attempts.fail(5, denied)
      f.timer.advance(10000)
      running.unknown
    }
  }

  test("the error of an aborted attempt starts no further attempt")(new One {
    timer.advance(4000)
    running.attempts.fail(1, new java.io.InterruptedIOException("aborted"))
    timer.advance(3999)
    assert(running.attempts.begun == 4 && running.outcome.isEmpty)
  })

  test("the timeout of an attempt grows with the size of its object")(new One(large) {
    timer.advance(128000)
    // At 0, 1, 2, 4, 8, 16, 32, 64 and 128 s.
    assert(running.attempts.begun == 9)
    timer.advance(99999)
    assert(running.attempts.begun == 9)
    timer.advance(1)
    assert(running.attempts.begun == 10)
  })

  test("hedges do not reduce the number of retries")(new One {
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

  test("a retry waits for its delay even if a hedge would be due")(new One(options = quick) {
    running.attempts.fail(1)
    timer.advance(499)
    assert(running.attempts.begun == 1)
    timer.advance(1)
    assert(running.attempts.begun == 2)
  })

  test("without retries an attempt runs until the deadline, and an error ends the request")(new Fixture(none) {
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

  test("a hedge starts when an attempt is slower than recent ones of its kind and size")(new Fixture {
    observe(RequestOptions.MinSamples, 40)
    val other = run(RequestKind(OperationKind.Put, 1000000))
    val running = run()
    timer.advance(79)
    assert(running.attempts.begun == 1)
    timer.advance(1)
    assert(running.attempts.begun == 2 && other.attempts.begun == 1)
  })

  test("the hedge budget limits early attempts but not attempts after the timeout")(new Fixture {
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
    def on(path: String) = new Fixture(history = histories.of(new Path(path)), timer = timer)
    val (slow, again, healthy) = (on("s3a://slow/a"), on("s3a://slow/b"), on("s3a://healthy/a"))
    Seq(slow, healthy).foreach(_.observe(100, 40))
    (1 to 100).foreach(_ => slow.run())
    timer.advance(900)
    val (sameSlow, other) = (again.run(), healthy.run())
    timer.advance(90)
    assert(slow.metrics().hedges.value == 10 && sameSlow.attempts.begun == 1 && other.attempts.begun == 2)
  }

  test("cancelled attempts count with the time that they ran")(new Fixture {
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

  // Outcomes of writes.

  test("a definite refusal fails a write at once with its error")(new One {
    running.attempts.fail(1, denied)
    assert(running.failure.getCause == denied && running.failure.getMessage.contains("denied"))
    assert(timer.pending == 0 && running.attempts.begun == 1)
  })

  test("a write is unknown if one attempt was refused and another ended without an answer")(new One {
    running.attempts.fail(1, new IOException("reset"))
    timer.advance(500)
    running.attempts.fail(2, denied)
    assert(running.unknown.getMessage.contains("denied"))
    assert(running.unknown.getSuppressed.exists(_.getMessage == "reset"))
  })

  test("a refused write waits for its unanswered attempts until the deadline") {
    for (answers <- Seq(true, false)) {
      val f = new Fixture
      val running = f.run()
      f.timer.advance(1000)
      running.attempts.fail(2, denied)
      f.timer.advance(598999)
      assert(running.outcome.isEmpty && running.attempts.begun == 2)
      if (answers) {
        running.attempts.succeed(1)
        assert(running.outcome.contains(Outcome.Done("answer 1")))
      } else {
        f.timer.advance(1)
        assert(running.unknown.getMessage.contains("denied"))
        assert(running.attempts.isCancelled(1))
      }
    }
  }

  test("a write without an answer at the deadline is unknown and begins no attempt")(new One(write, 2500) {
    timer.advance(2500)
    val error = running.unknown
    assert(error.asInstanceOf[DstlException].condition == "DSTL_REQUEST_TIMEOUT")
    Seq("put of /x", "2500 ms", "3 attempt(s)", "commit.timeout").foreach(words =>
      assert(error.getMessage.contains(words))
    )
    assert((1 to 3).forall(running.attempts.isCancelled))
    timer.advance(1000000)
    assert(running.attempts.begun == 3 && timer.pending == 0)
    assert(metrics().unknown.value == 1)
  })

  test("the error at the deadline shows the root cause")(new One(timeoutMillis = 1200) {
    running.attempts.fail(1, new IOException("read-back failed", new IOException("no route to host")))
    timer.advance(1200)
    assert(running.unknown.getMessage.contains("no route to host"))
    assert(running.unknown.getCause.getMessage == "read-back failed")
  })

  test("a write whose attempts were all refused with passing errors fails at its deadline")(new One(write, 1000) {
    running.attempts.fail(1, new FileNotFoundException("no bucket"))
    timer.advance(500)
    running.attempts.fail(2, new FileNotFoundException("no bucket"))
    assert(running.failure.getMessage.contains("no bucket"))
  })

  test("a request that must not overlap is neither hedged nor retried after a missing answer")(new Fixture {
    val unanswered = run(cautious, timeoutMillis = 60000)
    timer.advance(59999)
    assert(unanswered.attempts.begun == 1)
    timer.advance(1)
    unanswered.unknown
    val failing = run(cautious)
    failing.attempts.fail(1, new IOException("reset"))
    failing.unknown
    assert(failing.attempts.begun == 1)
  })

  test("a request that must not overlap is retried after an error that proves no effect")(new One(cautious) {
    running.attempts.fail(1, new FileNotFoundException("not yet"))
    timer.advance(500)
    running.attempts.succeed(2)
    assert(running.outcome.contains(Outcome.Done("answer 2")))
  })

  // Outcomes of reads.

  test("an unanswered read fails at its deadline")(new One(read, timeoutMillis = 2500) {
    timer.advance(2500)
    assert(running.failure.asInstanceOf[DstlException].condition == "DSTL_REQUEST_TIMEOUT")
    assert(metrics(read).failures.value == 1)
  })

  test("a definite refusal fails a read at once even if another attempt is unanswered")(new One(read) {
    timer.advance(1000)
    running.attempts.fail(2, denied)
    assert(running.failure.getCause == denied && running.attempts.isCancelled(1))
  })

  // Attempts and timers that cannot be started.

  test("an attempt that cannot be started counts as an error and leaks nothing") {
    for (error <- Seq(new IOException("no"), new OutOfMemoryError("unable to create native thread"))) {
      val f = new Fixture
      val attempts = new ScriptedAttempts
      attempts.refusal = Some(error)
      val pending = f.requests.run(read, "read of /x", 600000)(attempts)
      assert(f.requests.underWay == 0)
      if (error.isInstanceOf[IOException]) {
        attempts.refusal = None
        f.timer.advance(500)
        attempts.succeed(2)
        assert(pending.value.get.get == Outcome.Done("answer 2"))
      } else assert(pending.value.get.get.isInstanceOf[Outcome.Failed])
    }
  }

  test("a request without a timer fails") {
    val requests = new Requests(hedged, TestRuntime(StoppedTimer))
    val attempts = new ScriptedAttempts
    val outcome = requests.run(write, "put of /x", 1000)(attempts)
    assert(outcome.value.get.get.isInstanceOf[Outcome.Failed] && attempts.begun == 0)
  }

  test("a request with a timeout of zero begins no attempt")(new One(timeoutMillis = 0) {
    running.failure
    assert(running.attempts.begun == 0)
  })

  // The end.

  test("closing makes unanswered writes unknown and fails all other requests")(new Fixture {
    val (writing, reading, retrying) = (run(), run(read), run())
    retrying.attempts.fail(1, new FileNotFoundException("no bucket"))
    requests.close()
    requests.close()
    writing.unknown
    Seq(reading, retrying).foreach(_.failure)
    assert(writing.attempts.isCancelled(1))
    writing.attempts.succeed(1)
    writing.unknown
    val late = run()
    assert(late.failure.isInstanceOf[RequestEnded] && late.attempts.begun == 0)
    timer.advance(1000000)
    assert(retrying.attempts.begun == 1 && timer.pending == 0)
  })

  test("closed requests are quiet when their last attempt has ended or the wait times out")(new One {
    timer.advance(1000)
    requests.close()
    val short = requests.whenQuiet(10)
    val long = requests.whenQuiet(10000)
    timer.advance(10)
    assert(short.value.get.get == false && !long.isCompleted)
    running.attempts.succeed(1)
    assert(!long.isCompleted)
    running.attempts.fail(2)
    assert(long.value.get.get)
    assert(requests.whenQuiet(10).value.get.get)
    assert(timer.pending == 0)
  })

  test("an attempt that completes before it is registered counts")(new Fixture {
    val done = requests.run(write, "put of /x", 1000)(_ => new Attempt(Future.successful("now")))
    assert(done.value.get.get == Outcome.Done("now") && timer.pending == 0)
  })

  test("requests are counted by operation, with their latencies")(new Fixture {
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
