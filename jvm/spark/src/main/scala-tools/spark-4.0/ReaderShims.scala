// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.connector.read.PartitionReaderFactory
import org.apache.spark.sql.execution.datasources.v2.state._
import org.apache.spark.sql.execution.datasources.v2.state.utils.SchemaUtil
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider
import org.apache.spark.sql.types.StructType

/** Spark's reader of one partition, which opens the partition's provider. */
private[tools] final class OpenedReader(read: ReadBatch, table: StoredTable, partition: Int)
    extends StatePartitionReader(
      read.storeConf,
      read.serializable,
      new StateStoreInputPartition(partition, read.scan, ReadOptions.of(read, table, changes = false)),
      read.schema(table, changes = false),
      table.encoder,
      table.variable,
      Some(table.family),
      table.schemas
    ) {
  def openedProvider: StateStoreProvider = provider
  def checkpointId: Option[String] = None
}

/** The options of Spark's readers. */
private[tools] object ReadOptions {

  def of(read: ReadBatch, table: StoredTable, changes: Boolean): StateSourceOptions = {
    if (read.ids(table.operator).isDefined) throw new IllegalArgumentException(
      s"Spark ${org.apache.spark.SPARK_VERSION} cannot read the state of $table, whose checkpoint has checkpoint format 2; " +
        "Spark 4.1 and later can"
    )
    StateSourceOptions(
      read.root,
      read.batch,
      table.operator,
      table.store,
      StateSourceOptions.JoinSideValues.none,
      readChangeFeed = changes,
      fromSnapshotOptions = None,
      readChangeFeedOptions = Option.when(changes)(ReadChangeFeedOptions(read.batch, read.batch)),
      stateVarName = table.variable.map(_.stateName).filterNot(_ => table.isTimers),
      readRegisteredTimers = table.isTimers,
      flattenCollectionTypes = true
    )
  }
}

/** Creates Spark's readers of state. */
private[tools] object ReaderShims {

  def schema(options: StateSourceOptions, of: StoredTable): StructType =
    SchemaUtil.getSourceSchema(options, of.family.keySchema, of.family.valueSchema, of.variable, Some(of.family))

  def factory(read: ReadBatch, of: StoredTable, schema: StructType): PartitionReaderFactory = {
    import read.{serializable, storeConf}
    new StatePartitionReaderFactory(
      storeConf,
      serializable,
      schema,
      of.encoder,
      of.variable,
      Some(of.family),
      of.schemas
    )
  }
}
