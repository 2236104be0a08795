// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration

/** The log's options in a Hadoop configuration, into which Spark copies the session's SQL configurations. */
object HadoopOptions {
  def parse(configuration: Configuration): LogOptions =
    LogOptions.parse(
      configuration.getPropsWithPrefix(LogOptions.Prefix).asScala.map { case (key, value) =>
        (LogOptions.Prefix + key, value)
      }
    )
}
