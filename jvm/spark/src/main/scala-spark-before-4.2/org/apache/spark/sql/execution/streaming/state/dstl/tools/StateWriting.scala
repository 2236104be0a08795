package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.state.{StateStoreColFamilySchema, StateStoreConf}

/** Spark's writer for states that are rewritten, which there is none of yet. */
private[tools] object StateWriting {

  /** Operators whose values have not the schema that Spark notes for them. */
  val OperatorsOverGroups: Seq[String] = Nil

  /** Settings with which what writes a state tells Spark's coordinator of it. */
  val ReportsToCoordinator: Seq[String] = Nil

  def write(
      table: StoredTable,
      family: StateStoreColFamilySchema,
      storeConf: StateStoreConf,
      configuration: Configuration,
      partition: Int,
      place: String,
      version: Long,
      rows: Iterator[InternalRow]
  ): Unit = throw new UnsupportedOperationException(
    s"Spark ${org.apache.spark.SPARK_VERSION} cannot write a state at a version of choice, Spark 4.2 and later can"
  )
}
