package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.SparkSession

/** Lets those outside of Spark's packages wait for its listeners. */
object ListenerBus {

  /** Waits until listeners have seen everything that has happened; fails after ten seconds. */
  def drain(spark: SparkSession): Unit = spark.sparkContext.listenerBus.waitUntilEmpty()
}
