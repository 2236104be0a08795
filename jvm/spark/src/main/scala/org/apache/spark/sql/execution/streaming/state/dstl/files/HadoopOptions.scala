package org.apache.spark.sql.execution.streaming.state.dstl.files

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration

import sparkdstl.log.config.LogOptions

/** The log's options out of a Hadoop configuration, into which Spark copies the session's SQL configurations. */
private[dstl] object HadoopOptions {
  def parse(configuration: Configuration): LogOptions =
    LogOptions.parse(
      configuration.getPropsWithPrefix(LogOptions.Prefix).asScala.map { case (key, value) =>
        (LogOptions.Prefix + key, value)
      }
    )
}
