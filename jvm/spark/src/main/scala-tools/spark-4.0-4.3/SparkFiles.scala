// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import scala.util.control.NonFatal

/** Files of Spark in a checkpoint that Spark's own code reads, whose errors do not name them. */
private[tools] object SparkFiles {

  /** Reads such a file. Throws an error that names it; whether it is damaged, or storage has failed, the cause shows. */
  def reading[T](file: String)(read: => T): T =
    try read
    catch {
      case NonFatal(error) =>
        throw new IllegalStateException(s"$file could not be read; `dstl verify` says whether it is damaged", error)
    }
}
