// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.ProtocolErrors

/** The outcome of a request with all its attempts. A request that ended without an answer may have taken effect. */
sealed trait Outcome[+T] {

  /** The outcome as a future, which does not distinguish failed and unknown. */
  def asFuture: Future[T] = orElseFail(identity)

  /**
   * The outcome of a write of `path` as a future: it fails with DSTL_WRITE_FAILED, or with DSTL_COMMIT_UNKNOWN if the write may
   * have taken effect within `timeoutMillis` or may later.
   */
  def ofWrite(path: Path, timeoutMillis: Long): Future[T] = this match {
    case Outcome.Done(value) => Future.successful(value)
    case Outcome.Failed(error) => Future.failed(ProtocolErrors.commitFailed(path, error))
    case Outcome.Unknown(error) => Future.failed(ProtocolErrors.commitUnknown(path, timeoutMillis, error))
  }

  /** The outcome as a future with a transformed error, which does not distinguish failed and unknown. */
  def orElseFail(explain: Throwable => Throwable): Future[T] = this match {
    case Outcome.Done(value) => Future.successful(value)
    case Outcome.Failed(error) => Future.failed(explain(error))
    case Outcome.Unknown(error) => Future.failed(explain(error))
  }
}

object Outcome {

  final case class Done[+T](value: T) extends Outcome[T]

  /** The request took no effect and never will: storage has refused it, or it is a read. */
  final case class Failed(error: Throwable) extends Outcome[Nothing]

  /**
   * The request may have taken effect or may do so later: an attempt had no answer, or ended in an error that does not exclude
   * an effect. `cause` is the last error or a timeout, with the errors of other attempts suppressed.
   */
  final case class Unknown(cause: Throwable) extends Outcome[Nothing]
}
