// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.Promise

import sparkdstl.log.storage.Attempt

/** Attempts without an answer until the test ends them. Results are strings. */
final class ScriptedAttempts extends (Int => Attempt[String]) {
  private val promises = mutable.ArrayBuffer.empty[Promise[String]]
  private val cancelled = mutable.Set.empty[Int]

  /** The error with which attempts fail to start, if any. */
  var refusal: Option[Throwable] = None

  override def apply(attempt: Int): Attempt[String] = {
    promises += Promise[String]()
    assert(attempt == promises.size, "attempts are counted from 1")
    refusal.foreach(error => throw error)
    new Attempt(promises.last.future, () => cancelled += attempt: Unit)
  }

  def begun: Int = promises.size

  def isCancelled(attempt: Int): Boolean = cancelled(attempt)

  def succeed(attempt: Int): Unit = promises(attempt - 1).success(s"answer $attempt"): Unit

  def fail(attempt: Int, error: Throwable = new IOException("injected")): Unit =
    promises(attempt - 1).failure(error): Unit
}
