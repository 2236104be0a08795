// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.UUID

import scala.util.Using

import org.apache.hadoop.conf.Configuration

import sparkdstl.log.error.Causes

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.execution.datasources.v2.state._
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.EntryPoints
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

/**
 * A batch of a checkpoint, with what Spark's state readers need.
 *
 * @param ids           the store checkpoint ids of an operator, by partition and store, if the checkpoint has them
 * @param settings      those of the batch
 * @param configuration the storage's, with the same settings
 * @param scan          identifies readers that share the commit entries which they read
 */
private[tools] final case class ReadBatch(
    root: String,
    batch: Long,
    ids: Int => Option[Array[Array[String]]],
    settings: SQLConf,
    configuration: Configuration,
    scan: UUID = UUID.randomUUID()
) {

  def storeConf: StateStoreConf = new StateStoreConf(settings, Map.empty)

  /** A copy for one reader, because a provider adds settings to it. */
  def serializable: SerializableConfiguration = {
    val copy = new Configuration(configuration)
    copy.set(EntryPoints.Scan, scan.toString)
    new SerializableConfiguration(copy)
  }

  def schema(table: StoredTable, changes: Boolean): StructType = ReaderShims.schema(options(table, changes), table)

  /**
   * A partition as Spark's readers take it, each as a run of its own: all stores of a partition in one run share the decoder of a
   * column family, with the schema of the first and one row for all that is decoded.
   */
  def input(table: StoredTable, partition: Int, changes: Boolean): StateStoreInputPartition =
    new StateStoreInputPartition(partition, UUID.randomUUID(), options(table, changes))

  private def options(table: StoredTable, changes: Boolean): StateSourceOptions = OptionsShims.withIds(
    StateSourceOptions(
      root,
      batch,
      table.operator,
      table.store,
      StateSourceOptions.JoinSideValues.none,
      readChangeFeed = changes,
      fromSnapshotOptions = None,
      readChangeFeedOptions = Option.when(changes)(ReadChangeFeedOptions(batch, batch)),
      stateVarName = table.variable.map(_.stateName).filterNot(_ => table.isTimers),
      readRegisteredTimers = table.isTimers,
      flattenCollectionTypes = true
    ),
    this,
    table
  )
}

/** Rows of one schema. Partitions are read in several threads at once. */
private[tools] trait Rows {
  def schema: StructType

  /** The rows of a partition. A row is valid until the next is read. */
  def of(partition: Int)(use: Iterator[InternalRow] => Unit): Unit
}

/** A reader of Spark of one partition, which opens the partition's provider. */
private[tools] trait Opened extends StatePartitionReaderBase {
  def openedProvider: StateStoreProvider = provider

  /** Closes the provider in any case: after a load that failed, Spark's reader loads again here, and fails before it closes it. */
  override def close(): Unit = Causes.cleaningUp(openedProvider.close())(super.close())
}

/** The state as of a batch, or its change records, as Spark's readers of state return them. */
private[tools] final class SparkRows(read: ReadBatch, table: StoredTable, changes: Boolean) extends Rows {
  override val schema: StructType = read.schema(table, changes)

  override def of(partition: Int)(use: Iterator[InternalRow] => Unit): Unit = {
    val opened = if (changes) new OpenedChanges(read, table, partition) else new OpenedReader(read, table, partition)
    Using.resource(opened) { reader =>
      val rows = Iterator.continually(reader).takeWhile(_.next()).map(_.get())
      use(if (changes && table.hasManyValues) withOthers(rows, new EveryValue(reader.openedProvider, table)) else rows)
    }
  }

  /** A row for each value of a record. */
  private def withOthers(rows: Iterator[InternalRow], every: EveryValue): Iterator[InternalRow] = {
    val (kind, value) = (schema.fieldIndex("change_type"), schema.fieldIndex("key") + 1)
    rows.flatMap { row =>
      def others = if (row.isNullAt(value)) Iterator.empty else every.others
      Iterator(row) ++ others.map { other =>
        val copy = new GenericInternalRow(row.toSeq(schema).toArray)
        copy.update(kind, EveryValue.Append)
        copy.update(value, other)
        copy
      }
    }
  }
}

/**
 * The rows in which the states as of two batches differ, by their keys. It iterates over each state once and looks up each key
 * in the other state, so memory does not grow with either.
 *
 * @param from the earlier batch, usually
 */
private[tools] final class DifferentRows(from: ReadBatch, to: ReadBatch, table: StoredTable) extends Rows {
  private val value = table.cellType(table.family.valueSchema)

  override val schema: StructType = new StructType()
    .add("change", StringType, nullable = false)
    .add("key", table.family.keySchema)
    .add("before", value)
    .add("after", value)
    .add("partition_id", IntegerType, nullable = false)

  override def of(partition: Int)(use: Iterator[InternalRow] => Unit): Unit =
    Using.resources(new LookedUp(from, partition), new LookedUp(to, partition)) { (before, after) =>
      use(addedOrChanged(before, after, partition) ++ removed(before, after, partition))
    }

  private def addedOrChanged(before: LookedUp, after: LookedUp, partition: Int): Iterator[InternalRow] =
    after.keys.flatMap { key =>
      val old = before.get(key)
      val now = after.get(key)
      if (old.isEmpty) Some(row("added", key, old, now, partition))
      else if (old != now) Some(row("changed", key, old, now, partition))
      else None
    }

  private def removed(before: LookedUp, after: LookedUp, partition: Int): Iterator[InternalRow] =
    before.keys.flatMap { key =>
      val now = after.get(key)
      if (now.isEmpty) Some(row("removed", key, before.get(key), now, partition)) else None
    }

  private def row(change: String, key: UnsafeRow, old: Seq[UnsafeRow], now: Seq[UnsafeRow], partition: Int) =
    new GenericInternalRow(Array[Any](UTF8String.fromString(change), key, table.cell(old), table.cell(now), partition))

  /** One partition's state as of one batch, by its keys. */
  private final class LookedUp(read: ReadBatch, partition: Int) extends AutoCloseable {
    private val reader = new OpenedReader(read, table, partition)
    private val store = Causes.cleaningUp(reader.openedProvider.close()) {
      reader.openedProvider.getReadStore(read.batch + 1, reader.checkpointId)
    }

    /** Copies, because a lookup changes the row that an iterator returned. */
    def keys: Iterator[UnsafeRow] = store.iterator(table.familyName).map(_.key.copy())

    /** The values of a key; empty without the key. */
    def get(key: UnsafeRow): Seq[UnsafeRow] = table.valuesOf(store, key)

    override def close(): Unit =
      try store.abort()
      finally reader.openedProvider.close()
  }
}
