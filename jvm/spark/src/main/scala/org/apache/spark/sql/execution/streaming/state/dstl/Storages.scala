package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.storage.{HadoopLogStorage, LogStorage, MemoryLogStorage, PublishMode}

/** Storage as the options say. */
private[dstl] object Storages {

  /** One for the whole process, so that a query finds what it wrote; its content goes with the process. */
  private lazy val memory = new MemoryLogStorage(() => System.currentTimeMillis())

  def of(directory: Path, configuration: Configuration, options: LogOptions): LogStorage =
    if (options.inMemory) memory
    else HadoopLogStorage(configuration, directory, PublishMode.named(options.publish).get)
}
