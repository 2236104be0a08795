// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import sparkdstl.log.config.LogOptions
import sparkdstl.log.config.LogOptions.{Placing, Prefix}
import sparkdstl.log.error.LogErrors

import org.apache.spark.SparkContext
import org.apache.spark.sql.internal.SQLConf

/** The options of a query that its driver and its executors must share. */
private[dstl] object SharedOptions {

  /**
   * Fails if the session of the query, on whose thread this runs, keeps changes elsewhere than `atStart`. A store that is opened
   * from then on would write where the run does not look, and the batch would be committed without its changes.
   */
  def check(atStart: LogOptions): Unit = {
    val hadoop = SparkContext.getActive.map(_.hadoopConfiguration)
    val now = LogOptions.parse(Placing.map(key => s"$Prefix$key").map { key =>
      key -> SQLConf.get.getConfString(key, hadoop.map(_.get(key)).orNull)
    })
    atStart.placedElsewhereBy(now).foreach(key => throw LogErrors.changedOption(Prefix, key))
  }
}
