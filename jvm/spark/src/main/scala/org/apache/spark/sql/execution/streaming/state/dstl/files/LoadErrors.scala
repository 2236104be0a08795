package org.apache.spark.sql.execution.streaming.state.dstl.files

import sparkdstl.log.error.DstlException

import org.apache.spark.SparkException

/**
 * What a store cannot be loaded for, in a form that Spark passes on: Spark replaces the text of any other error
 * (`StateStoreErrors.cannotLoadStore`), and hides that of a failed task behind "Job aborted" (`DAGScheduler.abortStage`).
 */
private[dstl] object LoadErrors {
  private val Condition = "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"

  /** Runs `body`; if it fails with an error of the log, however deep, that one's text is the first thing to be read. */
  def inFront[T](body: => T): T =
    try body
    catch { case error: Exception => throw ofTheLog(error).fold(error)(passedOn(error, _)) }

  private def passedOn(error: Exception, named: DstlException): Exception = error match {
    case already: SparkException if already.getMessage == named.getMessage => already
    case _ => new SparkException(named.getMessage, error, Some(Condition), Map.empty[String, String])
  }

  private def ofTheLog(error: Throwable): Option[DstlException] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20).collectFirst { case named: DstlException =>
      named
    }
}
