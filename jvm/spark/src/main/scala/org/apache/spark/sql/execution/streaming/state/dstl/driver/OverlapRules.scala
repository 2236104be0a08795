// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.driver

import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, StreamingExecutionRelation}
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints
import org.apache.spark.sql.internal.SQLConf

/**
 * Which queries may run a batch's tasks before its offsets are durable: a driver that dies then leaves a batch that is planned
 * anew, with other input. `docs/design/0020-offsets-are-written-while-tasks-run.md` lists what each sink and source does.
 */
private[driver] object OverlapRules {

  private val streaming = "org.apache.spark.sql.execution.streaming"

  /** Sinks that make nothing of a batch visible before all its tasks have ended. */
  private val sinks = Set(
    s"$streaming.FileStreamSink",
    s"$streaming.sinks.FileStreamSink",
    s"$streaming.sources.MemorySink",
    s"$streaming.ConsoleTable$$",
    "org.apache.spark.sql.execution.datasources.noop.NoopTable$",
    "org.apache.spark.sql.delta.sources.DeltaSink",
    "org.apache.iceberg.spark.source.SparkTable"
  )

  /**
   * Sources of Spark's first API that return a batch again after its `commit`: a restart calls `getBatch` for it. Spark
   * does not ask those of the second API.
   */
  private val sources = Set(
    s"$streaming.FileStreamSource",
    s"$streaming.runtime.FileStreamSource",
    "org.apache.spark.sql.kafka010.KafkaSource",
    "org.apache.spark.sql.delta.sources.DeltaSource"
  )

  /**
   * Whether the snapshots of a query are plain files that are named by their version alone, as Spark's own provider writes them:
   * one of a batch that is then planned anew would count as the new batch's. Our provider's belong to what was committed.
   *
   * @param conf of the query, as its first batch has fixed it
   */
  def writesPlainSnapshots(conf: SQLConf): Boolean =
    CheckpointFormat.of(conf) == 1 && conf.stateStoreProviderClass != EntryPoints.Provider

  /** Called by the thread that drives the query. */
  def allow(query: StreamExecution): Boolean = sinks(query.sink.getClass.getName) && query.logicalPlan.collect {
    case relation: StreamingExecutionRelation => relation.source
  }.forall {
    case first: Source => sources(first.getClass.getName)
    case _ => true
  }
}
