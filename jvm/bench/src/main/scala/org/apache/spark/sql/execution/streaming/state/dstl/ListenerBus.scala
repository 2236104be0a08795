// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.spark.sql.SparkSession

/** Makes Spark's listener bus accessible outside of its packages. */
object ListenerBus {

  /** Waits until listeners have received all events; fails after ten seconds. */
  def drain(spark: SparkSession): Unit = spark.sparkContext.listenerBus.waitUntilEmpty()
}
