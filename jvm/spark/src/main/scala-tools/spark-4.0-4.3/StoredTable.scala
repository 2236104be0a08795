// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.execution.datasources.v2.state.metadata.{
  StateMetadataPartitionReader,
  StateMetadataTableEntry
}
import org.apache.spark.sql.execution.datasources.v2.state.utils.SchemaUtil
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.timers.TimerStateUtils
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.{
  StateVariableType,
  TransformWithStateOperatorProperties,
  TransformWithStateVariableInfo
}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{ArrayType, DataType}
import org.apache.spark.util.SerializableConfiguration

/**
 * A part of a checkpoint's state with one schema: a store of an operator, or one column family of it.
 *
 * @param store        its name in Spark
 * @param family       the column family; a state variable of `transformWithState` is one
 * @param partitions   the number of partitions
 * @param encoder      the encoding of its keys
 * @param variable     Spark's description of a state variable
 * @param schemas      earlier schemas of a state variable, by their ids
 * @param usesFamilies whether the store has column families
 */
private[tools] final case class StoredTable(
    operator: Int,
    operatorName: String,
    store: String,
    family: StateStoreColFamilySchema,
    partitions: Int,
    encoder: KeyStateEncoderSpec,
    variable: Option[TransformWithStateVariableInfo],
    schemas: Option[StateSchemaProvider],
    usesFamilies: Boolean
) {
  def familyName: String = family.colFamilyName

  /** The name that users see: empty for Spark's default store. */
  def shownStore: String = StoredTable.shown(store)
  def shownFamily: String = StoredTable.shown(familyName)

  /** The column family, in a store with several of them that are no state variables. */
  def familyOfMany: Option[String] = Option.when(usesFamilies && variable.isEmpty)(familyName)

  /** Whether a key has several values. */
  val hasManyValues: Boolean = StoredTable.hasManyValues(familyName, variable)

  /** The type of a key's value, which is an array of several; `one` is the type of each. */
  def cellType(one: DataType): DataType = if (hasManyValues) ArrayType(one) else one

  /** The values of a key in one of the table's stores; none without the key. */
  def valuesOf(store: ReadStateStore, key: UnsafeRow): Seq[UnsafeRow] =
    if (hasManyValues) store.valuesIterator(key, familyName).map(_.copy()).toVector
    else Option(store.get(key, familyName)).map(_.copy()).toVector

  /** Values of one key as a cell of the type `cellType`; null without a value. */
  def cell(values: Seq[UnsafeRow]): Any =
    if (values.isEmpty) null else if (hasManyValues) new GenericArrayData(values.toArray[Any]) else values.head

  /** A line for Python, its fields separated by tabs. */
  def line: String = Seq[Any](operator, operatorName, shownStore, shownFamily, partitions).mkString("\t")

  def isTimers: Boolean = variable.exists(of => StoredTable.Timers.exists(of.stateName.startsWith(_)))

  override def toString: String = {
    val named = Seq("store" -> shownStore, "column family" -> shownFamily).filter(_._2.nonEmpty)
    (s"operator $operator ($operatorName)" +: named.map { case (what, name) => s"$what $name" }).mkString(", ")
  }
}

private[tools] object StoredTable {
  private val TransformWithState = "transformWithState"
  private val Timers = Seq(TimerStateUtils.EVENT_TIMERS_STATE_NAME, TimerStateUtils.PROC_TIMERS_STATE_NAME)

  /** Column families of joins in which a key has many values, from state format 4 on. */
  private val JoinsWithMany =
    Set("left-keyWithTsToValues", "left-tsWithKey", "right-keyWithTsToValues", "right-tsWithKey")

  /** Whether a key of a column family has several values; `variable` is the state variable of that name. */
  def hasManyValues(family: String, variable: Option[TransformWithStateVariableInfo]): Boolean =
    SchemaUtil.checkVariableType(variable, StateVariableType.ListState) || JoinsWithMany(family)

  /** Whether the keys of a column family, which is no state variable, end with a time. */
  def endsWithTime(family: String): Boolean = JoinsWithMany(family)

  /** The first character in the names of Spark's internal column families. */
  private val Internal = "$"

  def shown(name: String): String = if (name == StateStoreId.DEFAULT_STORE_NAME) "" else name

  /** All tables of a checkpoint as of a batch. */
  def all(root: String, batch: Long, configuration: Configuration): Seq[StoredTable] =
    entries(root, batch, configuration).flatMap(entry => of(new Path(root, "state"), entry, configuration))

  /** Spark's metadata of all stores as of a batch. */
  def entries(root: String, batch: Long, configuration: Configuration): Seq[StateMetadataTableEntry] =
    SparkFiles.reading("a file state/*/_metadata/metadata or state/*/_metadata/v2/*") {
      new StateMetadataPartitionReader(root, new SerializableConfiguration(configuration), batch).stateMetadata.toVector
    }

  private def of(state: Path, entry: StateMetadataTableEntry, configuration: Configuration): Seq[StoredTable] = {
    val families = readSchema(state, entry, configuration)
    if (isOfVariables(entry)) {
      val schemas = schemasOf(state, entry, configuration)
      for (variable <- variablesOf(entry); family <- families.find(_.colFamilyName == variable.stateName))
        yield table(entry, family, Some(variable), schemas, usesFamilies = true)
    } else {
      val usesFamilies = families.exists(_.colFamilyName != StateStore.DEFAULT_COL_FAMILY_NAME)
      families
        .filterNot(_.colFamilyName.startsWith(Internal))
        .map(table(entry, _, None, None, usesFamilies))
    }
  }

  private def isOfVariables(entry: StateMetadataTableEntry) = entry.operatorName.startsWith(TransformWithState)

  /** The state variables of an operator; none of most operators. */
  def variablesOf(entry: StateMetadataTableEntry): Seq[TransformWithStateVariableInfo] =
    if (!isOfVariables(entry)) Nil
    else TransformWithStateOperatorProperties.fromJson(entry.operatorPropertiesJson).stateVariables

  def schemasOf(
      state: Path,
      entry: StateMetadataTableEntry,
      configuration: Configuration
  ): Option[StateSchemaProvider] = Option.when(isOfVariables(entry))(new InMemoryStateSchemaProvider(
    StateSchemaMetadata.createStateSchemaMetadata(state.toString, configuration, entry.stateSchemaFilePaths)
  ))

  /**
   * Version 1 of an operator's metadata has the number of its first batch, the settings of a batch have that batch's. Both have
   * Spark's shuffle partitions also for state that it keeps in one partition.
   */
  private def partitions(entry: StateMetadataTableEntry, family: StateStoreColFamilySchema): Int = {
    val isWhole = entry.operatorName == "globalLimit" ||
      entry.operatorName == "stateStoreSave" && family.keySchema.isEmpty
    val pinned = SQLConf.get.getAllConfs.get(SQLConf.SHUFFLE_PARTITIONS.key)
    if (isWhole) 1 else pinned.fold(entry.numPartitions)(_.toInt)
  }

  private def table(
      entry: StateMetadataTableEntry,
      family: StateStoreColFamilySchema,
      variable: Option[TransformWithStateVariableInfo],
      schemas: Option[StateSchemaProvider],
      usesFamilies: Boolean
  ) = StoredTable(
    entry.operatorId.toInt,
    entry.operatorName,
    entry.stateStoreName,
    family,
    partitions(entry, family),
    encoder(entry, family),
    variable,
    schemas,
    usesFamilies
  )

  /** Version 2 of an operator's metadata has the encoding with the column family, version 1 with the operator. */
  def encoder(entry: StateMetadataTableEntry, family: StateStoreColFamilySchema): KeyStateEncoderSpec =
    family.keyStateEncoderSpec.getOrElse {
      if (entry.numColsPrefixKey > 0) PrefixKeyScanStateEncoderSpec(family.keySchema, entry.numColsPrefixKey)
      else NoPrefixKeyStateEncoderSpec(family.keySchema)
    }

  /** The newest schema file that the metadata names, or else the store's own. Spark's reader of these files needs a session. */
  def readSchema(
      state: Path,
      entry: StateMetadataTableEntry,
      configuration: Configuration
  ): Seq[StateStoreColFamilySchema] = {
    import StateStore.PARTITION_ID_TO_CHECK_SCHEMA
    val store = StateStoreId(state.toString, entry.operatorId, PARTITION_ID_TO_CHECK_SCHEMA, entry.stateStoreName)
    // As in Spark's `schemaFile`.
    def own = new Path(new Path(store.storeCheckpointLocation(), "_metadata"), "schema")
    val file = entry.stateSchemaFilePaths.lastOption.fold(own)(new Path(_))
    SparkFiles.reading(s"$file") {
      StateSchemaCompatibilityChecker.readSchemaFile(CheckpointFileManager.create(file, configuration).open(file))
    }
  }
}
