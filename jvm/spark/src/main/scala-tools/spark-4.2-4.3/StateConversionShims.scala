// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.{Map => JavaMap, UUID}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.Causes

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorsUtils
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.types.UTF8String

/**
 * Copies the state of a checkpoint, as of one batch, into snapshots of RocksDB at the same version below another directory, store
 * by store. The provider that the checkpoint names reads it, and Spark's writer for rewritten states writes it; the copy is
 * then compared with the original. The checkpoint itself is only read.
 *
 * @param root     the checkpoint
 * @param target   the directory of the new one
 * @param settings of Spark, among them `spark.hadoop.` for the storage
 * @param before   the batch in the checkpoint
 * @param after    the batch in the new one
 */
private[sql] final class StateConversion(
    root: String,
    target: String,
    settings: JavaMap[String, String],
    before: StateBatch,
    after: StateBatch
) {
  import StateConversion._

  private val chosen = new GivenSettings(settings.asScala.toMap)
  private val source = chosen.qualified(root)
  private val destination = chosen.qualified(target)
  private val reading = chosen.reading(before)

  // If they cannot be read, the conversion of each store fails with the reason.
  private val tables =
    Try(SQLConf.withExistingConf(reading)(StoredTable.all(source, before.number, chosen.hadoopWith(reading))))

  /**
   * Copies one store, and compares the copy.
   *
   * @param isThere whether the copy exists already and is only compared
   */
  def convert(operator: Int, store: String, partition: Int, isThere: Boolean): ConvertedStore =
    try {
      val table = tables.get.find(of => of.operator == operator && of.shownStore == store).getOrElse {
        throw new IllegalArgumentException(s"there is no store '$store' of operator $operator")
      }
      withStore(source, reading, table, partition) { state =>
        if (!isThere) write(table, partition, state)
        compare(table, partition, state)
      }
    } catch {
      case NonFatal(error) => new ConvertedStore(0, isSame = false, SentRows.text(error) + wayOut(error))
    }

  private def write(table: StoredTable, partition: Int, state: ReadStateStore): Unit = {
    val conf = chosen.writing(after)
    // Outside of an application Spark has no coordinator.
    conf.setConf(SQLConf.STATE_STORE_COMMIT_VALIDATION_ENABLED, false)
    conf.setConf(SQLConf.STATE_STORE_COORDINATOR_REPORT_SNAPSHOT_UPLOAD_LAG, false)
    SQLConf.withExistingConf(conf) {
      val name = StateStore.DEFAULT_COL_FAMILY_NAME
      val family = table.family.copy(keyStateEncoderSpec = Some(table.encoder))
      val writer = new StatePartitionAllColumnFamiliesWriter(
        storeConf(table, conf),
        chosen.hadoopWith(conf),
        partition,
        destination,
        table.operator,
        table.store,
        before.number,
        Map(name -> StatePartitionWriterColumnFamilyInfo(family)),
        None
      )
      // The columns: a partition key, which the writer ignores, key, value and column family.
      writer.write(state.iterator().map { pair =>
        new GenericInternalRow(Array[Any](null, pair.key.getBytes, pair.value.getBytes, UTF8String.fromString(name)))
      }): Unit
    }
  }

  /** A store has each key once: two stores are the same if they have as many rows and each row of one is in the other. */
  private def compare(table: StoredTable, partition: Int, state: ReadStateStore): ConvertedStore =
    withStore(destination, chosen.reading(after), table, partition) { written =>
      val found = written.iterator()
      var rows = 0L
      var isSame = true
      while (isSame && found.hasNext) {
        val pair = found.next()
        rows += 1
        isSame = pair.value == state.get(pair.key, StateStore.DEFAULT_COL_FAMILY_NAME)
      }
      found.close()
      new ConvertedStore(rows, isSame && rows == state.iterator().size, null)
    }

  private def withStore[T](place: String, conf: SQLConf, table: StoredTable, partition: Int)(
      use: ReadStateStore => T
  ): T = SQLConf.withExistingConf(conf) {
    val id = StateStoreId(new Path(place, "state").toString, table.operator, partition, table.store)
    val provider = StateStoreProvider.createAndInit(
      StateStoreProviderId(id, UUID.randomUUID()),
      table.family.keySchema,
      table.family.valueSchema,
      table.encoder,
      useColumnFamilies = false,
      storeConf(table, conf),
      chosen.hadoopWith(conf),
      useMultipleValuesPerKey = false,
      None
    )
    try {
      val store = provider.getReadStore(before.number + 1, None)
      try use(store)
      finally store.abort()
    } finally provider.close()
  }
}

private object StateConversion {

  /** Spark does not check the values of functions over groups, because it does not record their schema. */
  private def storeConf(table: StoredTable, conf: SQLConf): StateStoreConf = {
    val isOfGroups = StatefulOperatorsUtils.FLAT_MAP_GROUPS_OP_NAMES.contains(table.operatorName)
    val checksValues = StateStoreConf.FORMAT_VALIDATION_CHECK_VALUE_CONFIG -> (!isOfGroups).toString
    new StateStoreConf(conf, Map(checksValues))
  }

  private def wayOut(error: Throwable): String =
    if (Causes.of(error).exists(_.isInstanceOf[OutOfMemoryError]))
      ". A store of this provider is held in memory as a whole: give the Java process more with --memory"
    else ""
}
