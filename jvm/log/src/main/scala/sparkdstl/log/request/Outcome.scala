package sparkdstl.log.request

import scala.concurrent.Future

/**
 * The outcome of a request with all its attempts. Callers handle each case: a request that ended without an answer may have
 * taken effect.
 */
sealed trait Outcome[+T] {

  /** As a future, for callers to whom failed and unknown are the same: both leave them without an answer. */
  def asFuture: Future[T] = orElseFail(identity)

  /** [[asFuture]], with an error made of the one there was. */
  def orElseFail(explain: Throwable => Throwable): Future[T] = this match {
    case Outcome.Done(value) => Future.successful(value)
    case Outcome.Failed(error) => Future.failed(explain(error))
    case Outcome.Unknown(error) => Future.failed(explain(error))
  }
}

object Outcome {

  /** It took effect, and this is the answer. */
  final case class Done[+T](value: T) extends Outcome[T]

  /** It did not take effect and never will: storage has refused it, or it was a read. */
  final case class Failed(error: Throwable) extends Outcome[Nothing]

  /**
   * It may have taken effect, or may do so later: an attempt had no answer, or ended in an error that is none.
   *
   * @param cause the last error, or that the deadline passed, with the errors of other attempts suppressed
   */
  final case class Unknown(cause: Throwable) extends Outcome[Nothing]
}
