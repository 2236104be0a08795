// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.commons.lang3.reflect.FieldUtils

import org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/**
 * The log of a query's file sink, which has an entry for each batch. Spark compacts them, and fails if one is missing: that of a
 * repartition, which writes nothing to a sink.
 */
private[driver] object FileSinkLog {

  /** Adds empty entries of the newest batches that are repartitions and have none. */
  def complete(query: StreamExecution, newest: Long)(isRepartition: Long => Boolean): Unit =
    of(query).foreach { log =>
      val missing = newest.until(log.getLatestBatchId().getOrElse(newest), -1).takeWhile(isRepartition)
      missing.reverse.foreach(log.add(_, Array.empty[AnyRef]))
    }

  private def of(query: StreamExecution): Option[HDFSMetadataLog[Array[AnyRef]]] =
    Option.when(query.sink.getClass.getSimpleName == "FileStreamSink") {
      FieldUtils.readField(query.sink, "fileLog", true).asInstanceOf[HDFSMetadataLog[Array[AnyRef]]]
    }
}
