// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.files

import sparkdstl.log.error.{Causes, DstlException, LostObjectException}

import org.apache.spark.SparkException
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun

/**
 * Gives errors of a load a form whose text Spark keeps: it replaces the text of any other error
 * (`StateStoreErrors.cannotLoadStore`), and hides that of a failed task behind "Job aborted" (`DAGScheduler.abortStage`).
 */
private[dstl] object LoadErrors {
  private val Condition = "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"

  /**
   * Runs `body`; if an error of the log is among the causes of its failure, the failure begins with that error's text. If an
   * object is damaged or missing, it also ends with it, and names the way out: Spark's texts advise to delete the checkpoint.
   */
  def inFront[T](run: => Option[WorkedRun])(body: => T): T =
    try body
    catch {
      case error: Exception =>
        throw Causes.of(error).collectFirst {
          case lost: LostObjectException =>
            val explained = run.filterNot(_ => lost.isExplained).fold(lost)(_.explain(lost))
            passedOn(explained, explained)
          case named: DstlException => passedOn(error, named)
        }.getOrElse(error)
    }

  private def passedOn(error: Exception, named: DstlException): Exception = error match {
    case already: SparkException if already.getMessage == named.getMessage => already
    case _ => new SparkException(named.getMessage, error, Some(Condition), Map.empty[String, String])
  }
}
