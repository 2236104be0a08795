// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.runtime

import scala.collection.mutable
import scala.concurrent.{Await, ExecutionContext, Future, Promise}
import scala.concurrent.duration.Duration
import scala.util.control.{NoStackTrace, NonFatal}

import sparkdstl.log.error.ProtocolErrors

/**
 * Blocks threads of Spark until a future has its value. A wait ends with the answer, with an interrupt, or with the end of the
 * Spark environment, after which it fails with `DSTL_SPARK_STOPPED` and no further wait begins. Thread-safe.
 */
final class Waiting extends AutoCloseable {
  import Waiting._

  // Guarded by this.
  private val waits = mutable.HashSet.empty[Promise[_]]
  private var ended = false

  /**
   * The value of the future; its own error is thrown as it is.
   *
   * @throws InterruptedException if the thread is interrupted; the operation continues
   */
  def on[T](future: => Future[T]): T = {
    if (isEnded) throw ProtocolErrors.sparkStopped()
    try await(future)
    catch {
      case Ended => throw ProtocolErrors.sparkStopped()
      case NonFatal(error) if isEnded => throw ProtocolErrors.sparkStopped(error)
    }
  }

  override def close(): Unit = {
    val open = synchronized {
      ended = true
      val open = waits.toVector
      waits.clear()
      open
    }
    open.foreach(_.tryFailure(Ended))
  }

  /** Whether the Spark environment has ended. */
  def isEnded: Boolean = synchronized(ended)

  private def await[T](future: Future[T]): T = {
    val answer = Promise[T]()
    future.onComplete(answer.tryComplete(_))(ExecutionContext.parasitic)
    val begins = synchronized {
      if (!ended) waits += answer
      !ended
    }
    if (!begins) answer.tryFailure(Ended): Unit
    // Spark's `ThreadUtils` would wrap the error, whose text is for the user.
    try Await.ready(answer.future, Duration.Inf)
    finally synchronized(waits -= answer): Unit
    answer.future.value.get.get
  }
}

private object Waiting {
  private object Ended extends Exception with NoStackTrace
}
