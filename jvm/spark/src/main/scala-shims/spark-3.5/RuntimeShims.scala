package org.apache.spark.sql.execution.streaming

// Where later lines of Spark have what this one has elsewhere, or only as literals; the rest is that of all lines before 4.1.

private[streaming] trait RuntimeShims {

  /** As `StreamExecution` names them. */
  object StreamingCheckpointConstants {
    val DIR_NAME_COMMITS = "commits"
    val DIR_NAME_OFFSETS = "offsets"
  }
}
