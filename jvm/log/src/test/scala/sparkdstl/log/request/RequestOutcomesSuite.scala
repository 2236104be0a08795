// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.{FileNotFoundException, IOException}

import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.DstlException
import sparkdstl.log.runtime.{StoppedTimer, TestRuntime}
import sparkdstl.log.storage.OperationKind

/** The outcomes of requests whose attempts fail or have no answer, and the end of all requests. */
class RequestOutcomesSuite extends AnyFunSuite {
  import RequestFixture._

  private val cautious = RequestKind(OperationKind.Replace, 1, concurrent = false)
  private val denied = new AccessControlException("denied")

  test("an aborted attempt leaves the outcome of a write unknown") {
    for (ends <- Seq(true, false)) {
      val f = new RequestFixture
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

  test("a definite refusal fails a write at once with its error")(new OneRequest {
    running.attempts.fail(1, denied)
    assert(running.failure.getCause == denied && running.failure.getMessage.contains("denied"))
    assert(timer.pending == 0 && running.attempts.begun == 1)
  })

  test("a write is unknown if one attempt was refused and another ended without an answer")(new OneRequest {
    running.attempts.fail(1, new IOException("reset"))
    timer.advance(500)
    running.attempts.fail(2, denied)
    assert(running.unknown.getMessage.contains("denied"))
    assert(running.unknown.getSuppressed.exists(_.getMessage == "reset"))
  })

  test("a refused write waits for its unanswered attempts until the deadline") {
    for (answers <- Seq(true, false)) {
      val f = new RequestFixture
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

  test("a write without an answer at the deadline is unknown and begins no attempt")(new OneRequest(write, 2500) {
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

  test("a write that storage refuses at each attempt fails at its deadline")(new OneRequest(write, 1000) {
    running.attempts.fail(1, new FileNotFoundException("no bucket"))
    timer.advance(500)
    running.attempts.fail(2, new FileNotFoundException("no bucket"))
    assert(running.failure.getMessage.contains("no bucket"))
  })

  test("a request that must not overlap is neither hedged nor retried after a missing answer")(new RequestFixture {
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

  test("a request that must not overlap is retried after an error that proves no effect")(new OneRequest(cautious) {
    running.attempts.fail(1, new FileNotFoundException("not yet"))
    timer.advance(500)
    running.attempts.succeed(2)
    assert(running.outcome.contains(Outcome.Done("answer 2")))
  })

  test("an unanswered read fails at its deadline")(new OneRequest(read, timeoutMillis = 2500) {
    timer.advance(2500)
    assert(running.failure.asInstanceOf[DstlException].condition == "DSTL_REQUEST_TIMEOUT")
    assert(metrics(read).failures.value == 1)
  })

  test("a definite refusal fails a read at once even if another attempt is unanswered")(new OneRequest(read) {
    timer.advance(1000)
    running.attempts.fail(2, denied)
    assert(running.failure.getCause == denied && running.attempts.isCancelled(1))
  })

  test("an attempt that cannot be started counts as an error and leaks nothing") {
    for (error <- Seq(new IOException("no"), new OutOfMemoryError("unable to create native thread"))) {
      val f = new RequestFixture
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

  test("a request whose attempt ended with a fatal error is not tried again, and the outcome of a write is unknown") {
    for (kind <- Seq(read, write)) {
      val running = new OneRequest(kind).running
      val fatal = new NoClassDefFoundError("injected")
      running.attempts.fail(1, fatal)
      assert((if (kind.isWrite) running.unknown else running.failure).getCause == fatal)
    }
  }

  test("a request without a timer fails") {
    val requests = new Requests(hedged, TestRuntime(StoppedTimer))
    val attempts = new ScriptedAttempts
    val outcome = requests.run(write, "put of /x", 1000)(attempts)
    assert(outcome.value.get.get.isInstanceOf[Outcome.Failed] && attempts.begun == 0)
  }

  test("a request with a timeout of zero begins no attempt")(new OneRequest(timeoutMillis = 0) {
    running.failure
    assert(running.attempts.begun == 0)
  })

  test("closing makes unanswered writes unknown and fails all other requests")(new RequestFixture {
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

  test("requests are quiet when the last attempt at a write has ended")(new OneRequest {
    timer.advance(1000)
    val quiet = requests.whenQuiet
    running.attempts.succeed(1)
    assert(running.outcome.nonEmpty && !quiet.isCompleted)
    run(read): Unit
    val retried = run()
    running.attempts.fail(2)
    retried.attempts.fail(1)
    assert(!quiet.isCompleted, "a write waits for its retry")
    requests.close()
    assert(quiet.isCompleted && requests.whenQuiet.isCompleted)
    assert(timer.pending == 0)
  })

  test("requests are settled some seconds after the last attempt at a write that was not answered")(new OneRequest {
    timer.advance(1000)
    running.attempts.succeed(2)
    assert(running.outcome.nonEmpty && running.attempts.isCancelled(1))
    timer.advance(10000)
    running.attempts.fail(1)
    val settled = requests.whenSettled
    assert(requests.whenQuiet.isCompleted && !settled.isCompleted, "storage may still carry out the cancelled attempt")
    timer.advance(2999)
    assert(!settled.isCompleted)
    timer.advance(1)
    assert(settled.isCompleted && requests.whenSettled.isCompleted && timer.pending == 0)
  })

  test("requests are settled at once if storage has answered each attempt at a write")(new OneRequest {
    running.attempts.fail(1, denied)
    run(read).attempts.fail(1)
    assert(requests.whenSettled.isCompleted)
  })
}
