// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.execution.datasources.v2.state._

/** The reader of a state. */
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
    )
    with Opened {
  def checkpointId: Option[String] = None
}

/** The reader of a batch's change records. */
private[tools] final class OpenedChanges(read: ReadBatch, table: StoredTable, partition: Int)
    extends StateStoreChangeDataPartitionReader(
      read.storeConf,
      read.serializable,
      new StateStoreInputPartition(partition, read.scan, ReadOptions.of(read, table, changes = true)),
      read.schema(table, changes = true),
      table.encoder,
      table.variable,
      Some(table.family),
      table.schemas
    )
    with Opened

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
