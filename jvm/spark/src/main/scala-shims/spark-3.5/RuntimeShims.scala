// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming

// Names that later lines of Spark have in this package. `StreamingShims` has the others.

private[streaming] trait RuntimeShims {

  /** As `StreamExecution` names them. */
  object StreamingCheckpointConstants {
    val DIR_NAME_COMMITS = "commits"
    val DIR_NAME_OFFSETS = "offsets"
    val DIR_NAME_STATE = "state"
  }
}
