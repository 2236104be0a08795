// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.io.FileNotFoundException

import scala.util.control.NonFatal

/** Files of Spark in a checkpoint that Spark's own code reads, whose errors do not name them. */
private[tools] object SparkFiles {

  /** Reads such a file. Throws an error that names it if it is not what Spark writes. */
  def reading[T](file: String)(read: => T): T =
    try read
    catch {
      case missing: FileNotFoundException => throw missing // It names the file.
      case NonFatal(error) => throw new IllegalStateException(
          s"$file is damaged, or of another version of Spark. `dstl verify` says which files are damaged",
          error
        )
    }
}
