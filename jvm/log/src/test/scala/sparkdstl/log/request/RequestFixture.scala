// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import scala.concurrent.Future

import org.scalatest.Assertions.fail

import sparkdstl.log.config.RetryPolicy
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.OperationKind

/** Requests with scripted attempts. */
class RequestFixture(
    options: RequestOptions = RequestFixture.hedged,
    history: StorageHistory = new StorageHistory,
    val timer: ManualTimer = new ManualTimer,
    starts: Boolean = false
) {
  import RequestFixture._

  val requests = new Requests(options, TestRuntime(timer), new RequestMetrics, history, isStarting = () => starts)

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

object RequestFixture {
  val hedged: RequestOptions =
    RequestOptions(RetryPolicy.Hedged, 1000, maxAttempts = 3, nextAttemptDelayMillis = 500)
  val fixed: RequestOptions = hedged.copy(policy = RetryPolicy.Fixed)
  val none: RequestOptions = hedged.copy(policy = RetryPolicy.NoRetry)

  val write: RequestKind = RequestKind(OperationKind.Put)
  val read: RequestKind = RequestKind(OperationKind.Read)

  /** A fixture with one request under way. */
  class OneRequest(
      kind: RequestKind = write,
      timeoutMillis: Long = 600000,
      options: RequestOptions = hedged,
      starts: Boolean = false
  ) extends RequestFixture(options, starts = starts) {
    val running: Running = run(kind, timeoutMillis)
  }
}
