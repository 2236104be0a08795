package org.apache.spark.sql.execution.streaming.state.dstl

import scala.concurrent.Await
import scala.concurrent.duration._
import scala.util.Try

import sparkdstl.log.retry.{Attempts, RetryingExecutor}

/**
 * Single requests, made with the retries and hedges that the options ask for. The caller waits, up to `timeoutMs`; an
 * attempt that is still silent then may take effect later all the same.
 */
private[dstl] final class RetriedRequests(executor: RetryingExecutor, val timeoutMs: Long) {

  /**
   * What the first attempt to succeed returns.
   *
   * @param name what the request is for, for errors
   * @throws sparkdstl.log.retry.AttemptsFailed    if all attempts failed, with the last error as the cause
   * @throws java.util.concurrent.TimeoutException if none was answered in time
   */
  def run[T](name: String)(attempt: () => T): T = {
    val requested = name
    val attempts = new Attempts[T] {
      override val name: String = requested
      override def run(number: Int): T = attempt()
      override def lost(number: Int, outcome: Try[T]): Unit = ()
    }
    Await.result(executor.run(attempts), timeoutMs.millis).result
  }
}
