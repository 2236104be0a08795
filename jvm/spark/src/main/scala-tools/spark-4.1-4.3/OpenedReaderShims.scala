// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.execution.datasources.v2.state._

/** The reader of a state. */
private[tools] class OpenedReader(read: ReadBatch, table: StoredTable, partition: Int)
    extends StatePartitionReader(
      read.storeConf,
      read.serializable,
      read.input(table, partition, changes = false),
      read.schema(table, changes = false),
      table.encoder,
      table.variable,
      Some(table.family),
      table.schemas,
      table.familyOfMany
    )
    with Opened {
  def checkpointId: Option[String] = getEndStoreUniqueId
}

/** The reader of a batch's change records. */
private[tools] final class OpenedChanges(read: ReadBatch, table: StoredTable, partition: Int)
    extends StateStoreChangeDataPartitionReader(
      read.storeConf,
      read.serializable,
      read.input(table, partition, changes = true),
      read.schema(table, changes = true),
      table.encoder,
      table.variable,
      Some(table.family),
      table.schemas,
      table.familyOfMany
    )
    with Opened

/** The options of Spark's readers. */
private[tools] object OptionsShims {

  def withIds(of: StateSourceOptions, read: ReadBatch, table: StoredTable): StateSourceOptions = {
    val ids = read.ids(table.operator)
    of.copy(startOperatorStateUniqueIds = ids, endOperatorStateUniqueIds = ids)
  }
}
