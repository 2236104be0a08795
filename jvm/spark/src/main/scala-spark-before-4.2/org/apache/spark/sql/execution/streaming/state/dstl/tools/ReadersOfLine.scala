package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.datasources.v2.state.StateSourceOptions
import org.apache.spark.sql.execution.datasources.v2.state.utils.SchemaUtil
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.timers.TimerStateUtils
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark's readers of state, in a form that no line of Spark changes. */
private[tools] object ReadersOfLine {

  /** Column families of joins in which a key has many values: none, before state format 4. */
  val JoinsWithMany: Set[String] = Set.empty

  def schema(options: StateSourceOptions, table: StoredTable): StructType = SchemaUtil.getSourceSchema(
    options,
    table.family.keySchema,
    table.family.valueSchema,
    table.variable,
    Some(table.family)
  )

  /** Whether Spark keeps a column family for itself. */
  def isInternal(family: String): Boolean = family.startsWith("$")

  /** Whether a state variable holds timers. */
  def isTimers(variable: String): Boolean =
    Seq(TimerStateUtils.EVENT_TIMERS_STATE_NAME, TimerStateUtils.PROC_TIMERS_STATE_NAME).exists(variable.startsWith(_))

  /** Reads schema files. */
  def checker(id: StateStoreProviderId, configuration: Configuration, files: List[Path]): SchemaFiles =
    new SchemaFiles(id, configuration, files)
}
