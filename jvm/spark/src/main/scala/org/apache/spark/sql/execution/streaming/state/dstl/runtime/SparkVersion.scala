package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import sparkdstl.log.error.{DstlException, ProtocolErrors}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging

/**
 * Whether this jar is for the Spark that is there. The Spark side uses classes that Spark changes between minor releases, so
 * there is a jar for each of these; any patch release of the minor release is taken.
 */
private[dstl] object SparkVersion extends Logging {
  private val verdict: Option[DstlException] = judge(SPARK_VERSION)

  /** @throws sparkdstl.log.error.DstlException if this jar is for another minor release */
  def check(): Unit = verdict.foreach(throw _)

  /** What is wrong with a version of Spark; None if nothing is, after a warning if the jar was not compiled against it. */
  private[dstl] def judge(found: String): Option[DstlException] =
    if (found != BuiltFor.Line && !found.startsWith(BuiltFor.Line + "."))
      Some(ProtocolErrors.unsupportedSpark(found, BuiltFor.Line))
    else {
      if (found != BuiltFor.Version)
        logWarning(
          s"This jar of spark-dstl was compiled against Spark ${BuiltFor.Version}, and is not tested with Spark $found"
        )
      None
    }
}
