package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.{SparkContext, TaskContext}

/** How tasks are told the run that they belong to: this Spark tells them the batch alone. */
private[dstl] object RunOfTask {
  val Property: String = "sparkdstl.run"

  /** The run of the calling task; outside of tasks, one that the configuration names. */
  def of(configuration: Configuration): Option[UUID] =
    Option(TaskContext.get()).flatMap(task => Option(task.getLocalProperty(Property)))
      .orElse(Option(configuration.get(Property))).map(UUID.fromString)

  /** To be called on the thread that drives the query, before its first batch: all its jobs carry it. */
  def tell(context: SparkContext, run: UUID): Unit = context.setLocalProperty(Property, run.toString)
}
