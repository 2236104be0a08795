// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.worker

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints

/** Warns, once for each checkpoint, that the state of a query bypasses the log: why, and what to do. */
private[dstl] object Bypass extends Logging {
  private val warned = ConcurrentHashMap.newKeySet[String]()
  private val Remembered = 1000

  /** Why a file that a store writes shows that its state bypasses the log; None if it does not. */
  def reasonFor(fileName: String, configuration: Configuration): Option[String] =
    if (fileName.endsWith(".delta") || fileName.endsWith(".snapshot"))
      Some(
        "its state store provider is Spark's default, HDFS-backed one, which a checkpoint keeps once it was started with " +
          "it. Its files are written with this project's retries. To use the log start the query with " +
          s"spark.sql.streaming.stateStore.providerClass=${EntryPoints.Provider} and a new checkpoint."
      )
    else if (fileName.endsWith(".zip") && !configuration.getBoolean(EntryPoints.ChangelogCheckpointing, false))
      Some(
        "its provider is Spark's own and changelog checkpointing is off, so each batch writes snapshots of its stores. Set " +
          s"${EntryPoints.ChangelogCheckpointing}=true on the session that starts the query."
      )
    else None

  /** For a checkpoint whose run no driver coordinates. */
  def warnOnce(root: Path): Unit =
    if (warned.size < Remembered && warned.add(root.toString))
      logWarning(
        s"The driver does not coordinate a log for $root: changelogs are written as plain files, and each task waits for its " +
          "own. To write them to the log set spark.sql.streaming.checkpointFileManagerClass to " +
          s"${EntryPoints.FileManager} on the session that starts the query."
      )
}
