package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import sparkdstl.log.error.{DstlException, ProtocolErrors}

import org.apache.spark.internal.Logging

/**
 * Whether the Spark that is there is one that this jar is for. The Spark side uses classes that Spark changes between minor
 * releases, so there is a jar for each of these; a patch release that it was not compiled against is taken if it has what
 * is used.
 */
private[dstl] object SparkVersion extends Logging {
  private val verdict: Option[DstlException] = judge(org.apache.spark.SPARK_VERSION, SparkUses.lacking())

  /** @throws sparkdstl.log.error.DstlException unless this process's Spark can be worked with */
  def check(): Unit = verdict.foreach(throw _)

  /**
   * What is wrong with a version of Spark; None if nothing is, after a warning if it was not compiled against.
   *
   * @param lacking what it lacks of what is used
   */
  private[dstl] def judge(found: String, lacking: => Seq[String]): Option[DstlException] =
    if (found == BuiltFor.Version) None
    else if (found != BuiltFor.Line && !found.startsWith(BuiltFor.Line + "."))
      Some(ProtocolErrors.unsupportedSpark(found, BuiltFor.Line))
    else {
      val missing = lacking
      if (missing.nonEmpty) Some(ProtocolErrors.incompatibleSpark(found, BuiltFor.Version, missing))
      else {
        logWarning(
          s"This jar of spark-dstl was compiled against Spark ${BuiltFor.Version} and was not tried with Spark $found, which " +
            "has everything that it uses: it goes on"
        )
        None
      }
    }
}
