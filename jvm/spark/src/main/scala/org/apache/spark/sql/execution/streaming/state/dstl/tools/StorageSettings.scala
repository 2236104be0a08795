package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkConf
import org.apache.spark.deploy.SparkHadoopUtil

/** How storage is reached outside of any application. */
private[tools] object StorageSettings {

  /** @param settings of Spark, among them `spark.hadoop.` for the storage */
  def of(settings: Map[String, String]): Configuration =
    SparkHadoopUtil.newConfiguration(new SparkConf(loadDefaults = false).setAll(settings))
}
