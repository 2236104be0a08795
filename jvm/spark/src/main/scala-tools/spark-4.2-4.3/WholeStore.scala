// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.UUID

import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow, XXH64}
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorsUtils
import org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.{
  StateStoreColumnFamilySchemaUtils,
  TransformWithStateVariableInfo
}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A column family of a store; a family with `hasMany` has several values for a key. */
private[tools] final case class WholeFamily(
    schema: StateStoreColFamilySchema,
    hasMany: Boolean,
    variable: Option[TransformWithStateVariableInfo]
) {
  def name: String = schema.colFamilyName
  def isDefault: Boolean = name == StateStore.DEFAULT_COL_FAMILY_NAME
}

/** A row of a store: the bytes of key and value, and `at`, the place of the value among those of its key. */
private[tools] final class WholeRow(val family: Int, val key: Array[Byte], val value: Array[Byte], val at: Int) {

  /** A sum of these numbers, over the rows of a store in any order, shows whether it has the same rows. */
  def digest: Long =
    WholeRow.hash(value, WholeRow.hash(key, family.toLong * Int.MaxValue + at))
}

private[tools] object WholeRow {
  private def hash(bytes: Array[Byte], seed: Long): Long =
    XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length, seed)
}

/** The number of rows and the sum of their digests, whatever their order. */
private[tools] final case class RowSum(rows: Long, digests: Long) {
  def +(row: WholeRow): RowSum = this + RowSum(1, row.digest)
  def +(other: RowSum): RowSum = RowSum(rows + other.rows, digests + other.digests)
}

private[tools] object RowSum {
  val none: RowSum = RowSum(0, 0)

  /** The sum of the rows that `use` takes. */
  def during(rows: Iterator[WholeRow])(use: Iterator[WholeRow] => Unit): RowSum = {
    var sum = none
    use(rows.map { row =>
      sum += row
      row
    })
    sum
  }
}

/**
 * A store of an operator in all its partitions, with all its column families: also those that Spark keeps for itself, such as
 * indexes of timers and of the ends of values.
 */
private[tools] final class WholeStore(
    val operator: Int,
    val operatorName: String,
    val name: String,
    val families: Vector[WholeFamily],
    schemas: Option[StateSchemaProvider]
) {
  private val usesFamilies = families.exists(!_.isDefault)

  /** The column families with rows: a store of variables has a default one, in which nothing is. */
  val keptIn: Seq[Int] = families.indices.filterNot(index => schemas.nonEmpty && families(index).isDefault)

  /** Spark does not check the values of functions over groups, because it does not record their schema. */
  private def storeConf(conf: SQLConf): StateStoreConf = {
    val isOfGroups = StatefulOperatorsUtils.FLAT_MAP_GROUPS_OP_NAMES.contains(operatorName)
    val checksValues = StateStoreConf.FORMAT_VALIDATION_CHECK_VALUE_CONFIG -> (!isOfGroups).toString
    new StateStoreConf(conf, Map(checksValues))
  }

  /** Reads the rows of a partition at a version of which `id` is the checkpoint id, if it has one. */
  def read[T](from: StateAt, partition: Int, version: Long, id: Option[String])(use: Iterator[WholeRow] => T): T =
    SQLConf.withExistingConf(from.settings) {
      val of = StateStoreId(from.state.toString, operator, partition, name)
      val first = families.find(_.isDefault).getOrElse(families.head).schema
      val provider = StateStoreProvider.createAndInit(
        StateStoreProviderId(of, UUID.randomUUID()),
        first.keySchema,
        first.valueSchema,
        first.keyStateEncoderSpec.get,
        useColumnFamilies = usesFamilies,
        storeConf(from.settings),
        from.hadoop,
        useMultipleValuesPerKey = false,
        schemas
      )
      try
        if (usesFamilies) {
          // A store that is only read knows no column families.
          val store = provider.getStore(version, id)
          try {
            families.filterNot(_.isDefault).foreach { family =>
              store.createColFamilyIfAbsent(
                family.name,
                family.schema.keySchema,
                family.schema.valueSchema,
                family.schema.keyStateEncoderSpec.get,
                family.hasMany,
                StateStoreColumnFamilySchemaUtils.isInternalColFamily(family.name)
              )
            }
            use(keptIn.iterator.flatMap(rows(store, _)))
          } finally store.abort()
        } else {
          val store = provider.getReadStore(version, id)
          try use(rows(store, 0))
          finally store.abort()
        }
      finally provider.close()
    }

  private def rows(store: ReadStateStore, index: Int): Iterator[WholeRow] = {
    val family = families(index)
    val pairs = store.iterator(family.name)
    if (!family.hasMany) pairs.map(pair => new WholeRow(index, bytesOf(pair.key), bytesOf(pair.value), 0))
    else
      pairs.map(_.key.copy()).flatMap { key =>
        store.valuesIterator(key, family.name).zipWithIndex.map { case (value, at) =>
          new WholeRow(index, bytesOf(key), bytesOf(value), at)
        }
      }
  }

  /** A copy: Spark changes a row when it reads the next. */
  private def bytesOf(row: UnsafeRow): Array[Byte] = row.copy().getBytes

  /**
   * Writes a partition as one snapshot of `version + 1`, with Spark's writer for states that are rewritten; returns its checkpoint
   * id, if the settings ask for one.
   */
  def write(to: StateAt, partition: Int, version: Long, rows: Iterator[WholeRow]): Option[String] = {
    import to.settings
    // Outside of an application Spark has no coordinator.
    settings.setConf(SQLConf.STATE_STORE_COMMIT_VALIDATION_ENABLED, false)
    settings.setConf(SQLConf.STATE_STORE_COORDINATOR_REPORT_SNAPSHOT_UPLOAD_LAG, false)
    SQLConf.withExistingConf(settings) {
      val names = families.map(family => UTF8String.fromString(family.name))
      val writer = new StatePartitionAllColumnFamiliesWriter(
        storeConf(settings),
        to.hadoop,
        partition,
        to.root,
        operator.toLong,
        name,
        version,
        families.map(of => of.name -> StatePartitionWriterColumnFamilyInfo(of.schema, of.hasMany)).toMap,
        schemas
      )
      // The columns: a partition key, which the writer ignores, key, value and column family.
      writer.write(rows.map { row =>
        new GenericInternalRow(Array[Any](null, row.key, row.value, names(row.family))): InternalRow
      }).stateStoreCkptId
    }
  }

  /** The checkpoint id of a partition, among those of the operator's stores. */
  def idIn(ids: Option[Array[Array[String]]], partition: Int): Option[String] =
    SymmetricHashJoinStateManager.getStateStoreCheckpointId(name, partition, ids)

  /** The place of this store's id among those of a partition. */
  def placeOfId: Int = idIn(Some(Array(Array("0", "1", "2", "3"))), 0).fold(0)(_.toInt)
}

/** All stores of a checkpoint as of a batch. */
private[tools] final class WholeStores(from: StateAt, batch: Long) {
  private val all = Try(SQLConf.withExistingConf(from.settings)(read()))

  /** A store by its name in Python; a failure if there is none, or if the stores cannot be read. */
  def find(operator: Int, name: String): Try[WholeStore] = all.map { stores =>
    stores.find(of => of.operator == operator && StoredTable.shown(of.name) == name).getOrElse {
      throw new IllegalArgumentException(s"there is no store '$name' of operator $operator")
    }
  }

  private def read(): Seq[WholeStore] = {
    val hadoop = from.hadoop
    StoredTable.entries(from.root, batch, hadoop).map { entry =>
      val variables = StoredTable.variablesOf(entry)
      val families = StoredTable.readSchema(from.state, entry, hadoop).map { schema =>
        val name = schema.colFamilyName
        WholeFamily(
          schema.copy(keyStateEncoderSpec = Some(StoredTable.encoder(entry, schema))),
          StoredTable.hasManyValues(name, variables.find(_.stateName == name)),
          variables.find(_.stateName == StateStoreColumnFamilySchemaUtils.getBaseStateName(name))
        )
      }
      new WholeStore(
        entry.operatorId.toInt,
        entry.operatorName,
        entry.stateStoreName,
        families.toVector,
        StoredTable.schemasOf(from.state, entry, hadoop)
      )
    }
  }
}
