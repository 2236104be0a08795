// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import sparkdstl.log.SoftwareVersion
import sparkdstl.log.error.DstlException

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.SparkVersion

/**
 * By this a client finds whether Spark runs with this jar: over py4j, or where there is only SQL, with
 * `SELECT java_method('<name of this object>', 'version')`.
 */
object DstlRelease {

  /** The jar's version, such as `0.1.0`. */
  def version(): String = SoftwareVersion.Current

  /** Why this jar cannot be used with the Spark that is there; null if it can. */
  def mismatch(): String =
    try {
      SparkVersion.check()
      null
    } catch { case problem: DstlException => problem.getMessage }
}
