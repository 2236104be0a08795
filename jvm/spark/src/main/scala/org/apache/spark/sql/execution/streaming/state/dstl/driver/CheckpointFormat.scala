// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.SegmentKind
import sparkdstl.log.read.LoadedEntry

import org.apache.spark.sql.execution.streaming.state.dstl.runtime.BuiltFor
import org.apache.spark.sql.internal.SQLConf

/** The checkpoint format of a query: from 2 on, changelogs have state store checkpoint ids. */
private[driver] object CheckpointFormat {

  def of(conf: SQLConf): Int = if (BuiltFor.Line == "3.5") 1 else conf.getConfString(Key, "1").toInt

  // Spark 3.5 has neither the format nor a constant for it.
  private val Key = "spark.sql.streaming.stateStore.checkpointFormatVersion"

  // Others fail at the commit of the first batch.
  private val AddsIds = !Set("4.0", "4.1", "4.2").contains(BuiltFor.Line)

  /**
   * Fails if the changelogs of the newest commit entry are of a format that Spark does not continue with the configured one: Spark's
   * error names neither, and advises to delete the checkpoint.
   */
  def check(newest: LoadedEntry, conf: SQLConf): Unit =
    newest.index.entries.map(_.key).find(_.kind == SegmentKind.Changelog).foreach { changelog =>
      val hasIds = changelog.checkpointId.isDefined
      val givesIds = of(conf) >= 2
      if (hasIds && !givesIds || givesIds && !hasIds && !AddsIds)
        throw LogErrors.otherFormat(newest.path, if (hasIds) 2 else 1, of(conf))
    }
}
