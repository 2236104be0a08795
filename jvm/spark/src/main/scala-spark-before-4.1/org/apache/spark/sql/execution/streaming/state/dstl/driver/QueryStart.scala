package org.apache.spark.sql.execution.streaming.state.dstl.driver

/** What Spark does when a query starts, where its lines differ. */
private[dstl] object QueryStart {

  /** Whether a query lists the commits of a checkpoint in which no batch was begun yet. */
  val ListsCommitsOfNew: Boolean = false
}
