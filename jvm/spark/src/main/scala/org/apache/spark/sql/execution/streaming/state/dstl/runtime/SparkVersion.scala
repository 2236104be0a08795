// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import sparkdstl.log.error.{DstlException, ProtocolErrors}

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging

/**
 * Checks that this jar is for the minor release of Spark that runs. `jvm/spark` uses classes that Spark changes between minor
 * releases, so each minor release has a separate jar, which accepts all patch releases.
 */
private[dstl] object SparkVersion extends Logging {
  private val verdict: Option[DstlException] = judge(SPARK_VERSION)

  /** @throws sparkdstl.log.error.DstlException if this jar is for another minor release */
  def check(): Unit = verdict.foreach(throw _)

  /** The error if the jar is for another minor release than `found`; warns about another patch release. */
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
