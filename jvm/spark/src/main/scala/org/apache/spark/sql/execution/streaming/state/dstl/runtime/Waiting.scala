package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.io.FileNotFoundException

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.Duration

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.request.Outcome

/** Where Spark expects to block. Every future of the log has a deadline of its own; an interrupt ends the wait. */
private[dstl] object Waiting {

  /**
   * What the future holds; its own error is thrown as it is.
   *
   * @throws InterruptedException if the thread is interrupted; what was waited for goes on
   */
  def on[T](future: Future[T]): T = {
    // Unlike Spark's own way of waiting this does not wrap the error, whose text is meant for the user.
    Await.ready(future, Duration.Inf)
    future.value.get.get
  }

  /** The answer to a question, or the error that explains why there is none. */
  def answer[T](path: Path, outcome: Future[Outcome[T]]): T = on(willBeAnswered(path, outcome))

  /** What came of a request, or the error that is made of its own. */
  def answer[T](outcome: Future[Outcome[T]], explain: Throwable => Throwable): T =
    on(outcome.flatMap(_.orElseFail(explain))(ExecutionContext.parasitic))

  private def willBeAnswered[T](path: Path, outcome: Future[Outcome[T]]): Future[T] =
    outcome.flatMap(_.orElseFail(ProtocolErrors.unreadable(path, _)))(ExecutionContext.parasitic)

  /** The answer to a question about something that has to be there. */
  def found[T](path: Path, outcome: Future[Outcome[Option[T]]]): T = on(willBeFound(path, outcome))

  /** The same, for whoever does not wait yet. */
  def willBeFound[T](path: Path, outcome: Future[Outcome[Option[T]]]): Future[T] =
    willBeAnswered(path, outcome)
      .map(_.getOrElse(throw new FileNotFoundException(s"File $path does not exist")))(ExecutionContext.parasitic)
}
