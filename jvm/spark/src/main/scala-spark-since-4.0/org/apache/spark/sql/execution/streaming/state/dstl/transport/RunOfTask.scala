package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/** How tasks are told the run that they belong to. */
private[dstl] object RunOfTask {

  /** Spark notes it in the configuration of a store, before the store is loaded. */
  def of(configuration: Configuration): Option[UUID] =
    Option(configuration.get(StreamExecution.RUN_ID_KEY)).map(UUID.fromString)

  /** To be called on the thread that drives the query, before its first batch. There is nothing to do: Spark tells. */
  def tell(context: SparkContext, run: UUID): Unit = ()
}
