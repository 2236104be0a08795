package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.UUID

import org.apache.spark.sql.execution.datasources.v2.state._
import org.apache.spark.sql.execution.streaming.state.{ReadStateStore, StateStoreProvider}

/** Spark's reader of one partition, for the provider that it opens. */
private[tools] final class OpenedReader(read: ReadBatch, table: StoredTable, partition: Int)
    extends StatePartitionReader(
      read.storeConf,
      read.serializable,
      new StateStoreInputPartition(partition, UUID.randomUUID(), ReadOptions.of(read, table, changes = false)),
      read.schema(table, changes = false),
      table.encoder,
      table.variable,
      Some(table.family),
      table.schemas
    ) {
  def openedProvider: StateStoreProvider = provider
  def checkpointId: Option[String] = None
}

private[tools] object OpenedReader {

  /** Lets go of what a provider gave for reading. */
  def release(store: ReadStateStore): Unit = store.abort()
}

/** What Spark's readers are made with. */
private[tools] object ReadOptions {

  def of(read: ReadBatch, table: StoredTable, changes: Boolean): StateSourceOptions = {
    if (read.ids(table.operator).isDefined) throw new IllegalArgumentException(
      s"Spark ${org.apache.spark.SPARK_VERSION} cannot read the state of $table, whose checkpoint has checkpoint format 2; " +
        "Spark 4.1 and later can"
    )
    StateSourceOptions(
      resolvedCpLocation = read.root,
      batchId = read.batch,
      operatorId = table.operator,
      storeName = table.store,
      joinSide = StateSourceOptions.JoinSideValues.none,
      readChangeFeed = changes,
      fromSnapshotOptions = None,
      readChangeFeedOptions = Option.when(changes)(ReadChangeFeedOptions(read.batch, read.batch)),
      stateVarName = table.variable.map(_.stateName).filterNot(_ => table.isTimers),
      readRegisteredTimers = table.isTimers,
      flattenCollectionTypes = true
    )
  }
}
