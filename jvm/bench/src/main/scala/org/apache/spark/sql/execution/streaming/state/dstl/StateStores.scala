package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.execution.streaming.state.StateStore

/** Lets those outside of Spark's packages close all stores of this process. */
object StateStores {

  /** Closes them; who needs one afterwards loads it again, with what is configured then. */
  def close(): Unit = StateStore.stop()
}
