package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.datasources.v2.state.StateSourceOptions
import org.apache.spark.sql.execution.datasources.v2.state.utils.SchemaUtil
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.{
  LeftSide,
  RightSide
}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.StateStoreColumnFamilySchemaUtils
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.timers.TimerStateUtils
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Spark's readers of state, in a form that no line of Spark changes. */
private[tools] object ReadersOfLine {

  /** Column families of joins in which a key has many values. */
  val JoinsWithMany: Set[String] = SymmetricHashJoinStateManager.allStateStoreNamesV4(LeftSide, RightSide).toSet

  def schema(options: StateSourceOptions, table: StoredTable): StructType = SchemaUtil.getSourceSchema(
    options,
    table.family.keySchema,
    table.family.valueSchema,
    table.variable,
    Some(table.family),
    None,
    None
  )

  /** Whether Spark keeps a column family for itself. */
  def isInternal(family: String): Boolean = StateStoreColumnFamilySchemaUtils.isInternalColFamily(family)

  /** Whether a state variable holds timers. */
  def isTimers(variable: String): Boolean = TimerStateUtils.isTimerCFName(variable)

  /** Reads schema files, and makes no directory for them. */
  def checker(
      id: StateStoreProviderId,
      configuration: Configuration,
      files: List[Path]
  ): StateSchemaCompatibilityChecker =
    new StateSchemaCompatibilityChecker(id, configuration, oldSchemaFilePaths = files, createSchemaDir = false)
}
