// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.IOException

import sparkdstl.log.error.{Causes, DstlException}

/** All attempts have failed. The last error is the cause, earlier ones are suppressed exceptions. */
final class RequestFailed(name: String, attempts: Int, last: Throwable)
    extends IOException(s"$name failed, in $attempts attempt(s): ${Causes.describe(last)}", last)

/** The request ended early because [[Requests]] or the timer was closed. */
final class RequestEnded(name: String, why: String, last: Option[Throwable])
    extends IOException(
      s"$name was given up: $why${last.fold("")(e => s"; last error: ${Causes.describe(e)}")}",
      last.orNull
    )

/** The errors of a request's attempts: the last one, and a few before it. */
private[request] final case class AttemptErrors(last: Option[Throwable] = None, earlier: Vector[Throwable] = Vector()) {

  def +(error: Throwable): AttemptErrors =
    AttemptErrors(Some(error), (earlier ++ last).takeRight(5))

  /** The error of a request all of whose attempts have ended. */
  def conclusion(name: String, attempts: Int): Throwable = last match {
    // The log's own errors need no wrapper.
    case Some(ours: DstlException) => ours
    case Some(error) => withEarlier(new RequestFailed(name, attempts, error))
    case None => new IOException(s"$name failed before it began")
  }

  def withEarlier(error: Throwable): Throwable = {
    earlier.foreach(error.addSuppressed)
    error
  }
}
