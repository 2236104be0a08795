// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.internal.SQLConf

/** The classes that Spark creates by name, and the settings that a store's configuration passes to them. */
private[dstl] object EntryPoints {
  private val Package = "org.apache.spark.sql.execution.streaming.state.dstl"

  val FileManager: String = s"$Package.DstlCheckpointFileManager"
  val Provider: String = s"$Package.DstlStateStoreProvider"

  /** The setting that names the file manager. */
  val FileManagerClass: String = SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key

  /** Without it Spark's own provider writes a snapshot at every commit, and no changelog. */
  val ChangelogCheckpointing: String = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

  /** Identifies readers of state that share the commit entries which they read; each is a run of its own to Spark. */
  val Scan: String = "sparkdstl.scan"

  /** Set by a provider that finds snapshots in the log. */
  val LogsSnapshots: String = "sparkdstl.logsSnapshots"

  /** Prepares the configuration that the tasks of an operator share for our provider. */
  def configure(configuration: Configuration, fileManager: String): Unit = {
    SparkVersion.check()
    configuration.set(FileManagerClass, fileManager)
    configuration.set(ChangelogCheckpointing, "true")
  }
}
