package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorsUtils
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf

/** Spark's writer for states that are rewritten, in a form that no line of Spark changes. */
private[tools] object StateWriting {

  /** Operators whose values have not the schema that Spark notes for them. */
  val OperatorsOverGroups: Seq[String] = StatefulOperatorsUtils.FLAT_MAP_GROUPS_OP_NAMES

  /** Settings with which what writes a state tells Spark's coordinator of it. */
  val ReportsToCoordinator: Seq[String] = Seq(
    SQLConf.STATE_STORE_COMMIT_VALIDATION_ENABLED.key,
    SQLConf.STATE_STORE_COORDINATOR_REPORT_SNAPSHOT_UPLOAD_LAG.key
  )

  /**
   * Writes a store of a single column family anew.
   *
   * @param version that the rows are the change from; what is written is the next
   * @param rows    partition key, which is not looked at, key, value and column family
   */
  def write(
      table: StoredTable,
      family: StateStoreColFamilySchema,
      storeConf: StateStoreConf,
      configuration: Configuration,
      partition: Int,
      place: String,
      version: Long,
      rows: Iterator[InternalRow]
  ): Unit = new StatePartitionAllColumnFamiliesWriter(
    storeConf,
    configuration,
    partition,
    place,
    table.operator,
    table.store,
    version,
    Map(StateStore.DEFAULT_COL_FAMILY_NAME -> StatePartitionWriterColumnFamilyInfo(family)),
    None
  ).write(rows): Unit
}
