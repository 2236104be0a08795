package sparkdstl.log.retry

import java.io.IOException
import java.util.concurrent.Executors

import scala.concurrent.{Await, Future}
import scala.concurrent.duration.DurationInt
import scala.util.Try

import org.apache.hadoop.fs.FileAlreadyExistsException
import org.scalatest.concurrent.{Signaler, ThreadSignaler, TimeLimits}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import sparkdstl.log.storage.StorageErrors

class RetryingExecutorSuite extends AnyFunSuite with TimeLimits {
  private implicit val signaler: Signaler = ThreadSignaler

  private class Fixture(policy: RetryPolicy, numThreads: Int) {
    val timer = new ManualTimer
    val metrics = new UploadMetrics
    val executor = new RetryingExecutor(
      policy,
      numThreads,
      timer,
      Executors.newCachedThreadPool(),
      StorageErrors.isRetryable,
      () => 0.5,
      metrics
    )

    def started: Long = metrics.snapshot().attemptsStarted
  }

  private val hedged = RetryPolicy.Hedged(maxAttempts = 3, timeoutMillis = 1000, nextAttemptDelayMillis = 500)
  private val fixed = RetryPolicy.Fixed(maxAttempts = 3, timeoutMillis = 1000, nextAttemptDelayMillis = 500)

  private def result[T](future: Future[T]): T = Await.result(future, 1.minute)

  private def failure(future: Future[_]): Throwable = Await.ready(future, 1.minute).value.get.failed.get

  /** A test whose threads wait for each other; a limit only ends it should they wait for ever. */
  private def holds(name: String, policy: RetryPolicy = hedged, numThreads: Int = 2)(check: Fixture => Any): Unit =
    test(name) {
      failAfter(Span(20, Seconds)) {
        val fixture = new Fixture(policy, numThreads)
        try check(fixture)
        finally fixture.executor.close()
      }
    }

  holds("the first success wins, at the first attempt") { f =>
    val task = new ScriptedAttempts("a")
    val winner = f.executor.run(task)
    task.succeed(1)
    assert(result(winner) == Won(1, "a 1"))
    assert(f.timer.pending == 0)
    assert(!task.hasLost(1))
  }

  for (policy <- Seq(hedged, fixed)) {
    val name = policy.productPrefix.toLowerCase

    holds(s"$name: silence starts another attempt, and the first success wins", policy) { f =>
      val task = new ScriptedAttempts("a")
      val winner = f.executor.run(task)
      task.awaitBegun(1)
      f.timer.advance(999)
      assert(f.started == 1)
      f.timer.advance(1)
      task.awaitBegun(2)
      task.succeed(2)
      assert(result(winner) == Won(2, "a 2"))
      assert(f.metrics.snapshot().hedges == 1)
      task.succeed(1)
      assert(task.awaitLost(1).get == "a 1")
      assert(!task.hasLost(2))
    }

    holds(s"$name: when all attempts time out the task waits, and a late success counts", policy) { f =>
      val task = new ScriptedAttempts("a")
      val winner = f.executor.run(task)
      for (attempt <- 1 to 3) {
        task.awaitBegun(attempt)
        f.timer.advance(1000)
      }
      f.timer.advance(1000000)
      assert(!winner.isCompleted)
      assert(f.started == 3)
      task.succeed(1)
      assert(result(winner) == Won(1, "a 1"))
    }

    holds(s"$name: an error leads to another attempt after the delay, whose success counts", policy) { f =>
      val task = new ScriptedAttempts("a")
      val winner = f.executor.run(task)
      task.fail(1)
      assert(task.awaitLost(1).isFailure)
      f.timer.awaitScheduled(2)
      f.timer.advance(499)
      assert(f.started == 1)
      f.timer.advance(1)
      assert(f.started == 2)
      task.succeed(2)
      assert(result(winner) == Won(2, "a 2"))
      assert(f.metrics.snapshot().retries == 1)
      assert(f.metrics.snapshot().hedges == 0)
    }

    holds(s"$name: a task fails when every attempt has failed, with all errors", policy) { f =>
      val task = new ScriptedAttempts("a")
      val winner = f.executor.run(task)
      task.awaitBegun(1)
      f.timer.advance(1000)
      task.awaitBegun(2)
      f.timer.advance(1000)
      task.awaitBegun(3)
      task.fail(2, new IOException("two"))
      task.awaitLost(2)
      task.fail(3, new IOException("three"))
      task.awaitLost(3)
      assert(!winner.isCompleted)
      task.fail(1, new IOException("one"))
      val error = failure(winner)
      assert(error.isInstanceOf[AttemptsFailed])
      assert((error.getCause +: error.getSuppressed.toSeq).map(_.getMessage).toSet == Set("one", "two", "three"))
    }
  }

  private val impatient = RetryPolicy.Fixed(maxAttempts = 3, timeoutMillis = 100, nextAttemptDelayMillis = 500)

  holds("an attempt that has failed is not silent: the next one waits for its delay", impatient) { f =>
    val task = new ScriptedAttempts("a")
    val winner = f.executor.run(task)
    task.fail(1)
    f.timer.awaitScheduled(2)
    f.timer.advance(499)
    assert(f.started == 1)
    f.timer.advance(1)
    task.succeed(2)
    assert(result(winner) == Won(2, "a 2"))
  }

  holds("an error that no attempt would mend fails the task at once") { f =>
    val task = new ScriptedAttempts("a")
    val winner = f.executor.run(task)
    task.fail(1, new FileAlreadyExistsException("taken"))
    assert(failure(winner).getCause.isInstanceOf[FileAlreadyExistsException])
    assert(f.started == 1)
  }

  holds("without retries an error fails the task, and silence is waited out", RetryPolicy.NoRetries) { f =>
    val silent = new ScriptedAttempts("silent")
    val waiting = f.executor.run(silent)
    silent.awaitBegun(1)
    f.timer.advance(1000000)
    val failing = new ScriptedAttempts("failing")
    failing.fail(1)
    failure(f.executor.run(failing))
    silent.succeed(1)
    result(waiting)
    assert(f.started == 2)
  }

  holds("a hedge starts once an attempt is slower than recent ones") { f =>
    for (n <- 1 to RetryPolicy.Hedged.MinSamples) {
      val task = new ScriptedAttempts(s"$n")
      val winner = f.executor.run(task)
      task.awaitBegun(1)
      f.timer.advance(40)
      task.succeed(1)
      result(winner)
    }
    val task = new ScriptedAttempts("slow")
    f.executor.run(task)
    task.awaitBegun(1)
    f.timer.advance(79)
    assert(f.metrics.snapshot().hedges == 0)
    f.timer.advance(1)
    assert(f.metrics.snapshot().hedges == 1)
    task.awaitBegun(2)
  }

  holds("stuck attempts in all first places leave threads to their hedges and to later tasks", numThreads = 2) { f =>
    val stuck = Seq("a", "b").map(new ScriptedAttempts(_))
    val winners = stuck.map(f.executor.run(_))
    val later = new ScriptedAttempts("later")
    later.succeed(1)
    val laterWinner = f.executor.run(later)
    stuck.foreach(_.awaitBegun(1))
    assert(!later.hasBegun(1))
    f.timer.advance(1000)
    stuck.foreach(_.awaitBegun(2))
    stuck.foreach(_.succeed(2))
    winners.foreach(winner => assert(result(winner).attempt == 2))
    assert(result(laterWinner) == Won(1, "later 1"))
    assert(!stuck.exists(_.hasLost(1)))
  }

  holds("losers that are stuck for ever do not starve later tasks: the oldest are interrupted", numThreads = 2) { f =>
    val tasks = (1 to 20).map(n => new ScriptedAttempts(s"$n"))
    tasks.foreach { task =>
      val winner = f.executor.run(task)
      task.awaitBegun(1)
      f.timer.advance(1000)
      task.succeed(2)
      assert(result(winner).attempt == 2)
    }
    assert(tasks.head.awaitLost(1).failed.get.isInstanceOf[InterruptedException])
    assert(!tasks.last.hasLost(1))
    assert(f.metrics.snapshot().interruptedLosers >= 14)
  }

  holds("an error that frees no thread does not end the task while another attempt may succeed") { f =>
    val task = new ScriptedAttempts("a")
    val winner = f.executor.run(task)
    task.awaitBegun(1)
    f.timer.advance(1000)
    task.awaitBegun(2)
    task.fail(1)
    task.awaitLost(1)
    task.succeed(2)
    assert(result(winner) == Won(2, "a 2"))
  }

  holds("closing fails what is pending, waiting tasks too, with a clear error", numThreads = 1) { f =>
    val tasks = Seq("running", "waiting").map(new ScriptedAttempts(_))
    val winners = tasks.map(f.executor.run(_))
    tasks.head.awaitBegun(1)
    f.executor.close()
    f.executor.close()
    winners.foreach(winner => assert(failure(winner).getMessage.contains("closed")))
    assert(tasks.head.awaitLost(1).isFailure)
    assert(!tasks(1).hasBegun(1))
    val late = f.executor.run(new ScriptedAttempts("late"))
    assert(failure(late).isInstanceOf[RetryingExecutorClosed])
  }

  holds("a loser's clean-up that throws harms nothing") { f =>
    val task = new Attempts[String] {
      override def name: String = "a"
      override def run(attempt: Int): String = if (attempt == 1) throw new IOException("injected") else "done"
      override def lost(attempt: Int, outcome: Try[String]): Unit = throw new IllegalStateException("injected")
    }
    val winner = f.executor.run(task)
    f.timer.awaitScheduled(2)
    f.timer.advance(500)
    assert(result(winner) == Won(2, "done"))
  }
}
