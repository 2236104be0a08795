// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.execution.datasources.v2.state._
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider

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
      table.schemas,
      table.familyOfMany
    ) {
  def openedProvider: StateStoreProvider = provider
  def checkpointId: Option[String] = getEndStoreUniqueId
}

/** The options of Spark's readers. */
private[tools] object ReadOptions {

  def of(read: ReadBatch, table: StoredTable, changes: Boolean): StateSourceOptions = StateSourceOptions(
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
    flattenCollectionTypes = true,
    startOperatorStateUniqueIds = read.ids(table.operator),
    endOperatorStateUniqueIds = read.ids(table.operator)
  )
}
