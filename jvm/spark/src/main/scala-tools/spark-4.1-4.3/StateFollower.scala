// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.{Map => JavaMap, UUID}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.Causes
import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.{EntryFound, LoadedEntry}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state.{
  RecordType,
  StateStore,
  StateStoreProvider,
  SupportsFineGrainedReplay
}
import org.apache.spark.sql.execution.streaming.state.dstl.worker.WorkedRun
import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.runtime.Checkpoint
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Follows a checkpoint, batch by batch: an entry is read once for all stores, and Spark's classes decode the changes that it
 * names. Python calls it over py4j, one call at a time, in a process that has Spark's classes and no Spark application.
 *
 * @param root     the checkpoint
 * @param settings of Spark, among them `spark.hadoop.` for the storage
 */
private[sql] final class StateFollower(root: String, settings: JavaMap[String, String]) extends AutoCloseable {
  private val chosen = new GivenSettings(settings.asScala.toMap)
  private val place = chosen.qualified(root)
  private var scan = UUID.randomUUID()
  private var run = runOfReaders()
  private var tables = Option.empty[FollowedTables]

  /** The run of the readers: the first to name it decides its options. */
  private def runOfReaders(): WorkedRun = {
    val configuration = new Configuration(chosen.hadoop)
    settings.asScala.foreach { case (key, value) =>
      if (key.startsWith(LogOptions.Prefix)) configuration.set(key, value)
    }
    val checkpoint = Checkpoint(new Path(place), configuration, LogOptions.parse(configuration))
    DstlEnvironment.get.workers.of(checkpoint, scan)
  }

  /** Forgets what was read: after a rollback other entries have the same names. */
  def startAnew(): Unit = {
    close()
    scan = UUID.randomUUID()
    run = runOfReaders()
  }

  /** The commit entry of a batch, whose length a listing has shown; null if it does not exist any more. */
  def entry(batch: Long, length: Long): FollowedEntry = run.waiting.on(run.reader.fetch(batch, Some(length))) match {
    case EntryFound.Absent => null
    case EntryFound.Plain => new FollowedEntry(None)
    case EntryFound.Logged(entry) => new FollowedEntry(Some(entry))
  }

  /** Reads which tables there are, as of a batch: again for each run of the query, which may have changed a schema. */
  def open(batch: StateBatch, selection: StateSelection): Unit = {
    close()
    val conf = chosen.reading(batch)
    val configuration = chosen.hadoopWith(conf)
    SQLConf.withExistingConf(conf) {
      // As Spark's reader of changes, without timers.
      val all = StoredTable.all(place, batch.number, configuration).filterNot(_.isTimers)
      val read = ReadBatch(place, batch.number, batch.ids, conf, configuration, scan)
      tables = Some(new FollowedTables(read, all, selection.of(all), selection))
    }
  }

  /** Sends the changes of a batch, and the rows of no other. */
  def changes(entry: FollowedEntry, port: Int, secret: String): SentRows = {
    val of = tables.getOrElse(throw new IllegalStateException("no batch is open"))
    new SentRows(() =>
      SQLConf.withExistingConf(of.settings) {
        ArrowSender.send(port, secret, of.schema)(Seq(of.changes(entry, _)))
      }
    )
  }

  /** A copy of the stores of the selected tables, not loaded yet. */
  def copy(selection: StateSelection): StateCopy = new StateCopy(selection)

  /** Loads a copy as of a batch, with the timers. */
  def load(copy: StateCopy, batch: StateBatch, committed: Long): Unit = {
    val conf = chosen.copying(batch)
    val configuration = chosen.hadoopWith(conf)
    SQLConf.withExistingConf(conf) {
      val all = StoredTable.all(place, batch.number, configuration)
      copy.load(ReadBatch(place, batch.number, batch.ids, conf, configuration, scan), all, committed)
    }
  }

  override def close(): Unit = {
    tables.foreach(_.close())
    tables = None
  }
}

/**
 * The commit entry of a followed batch. Without changelogs of any store in it, also with a log, the changes are in plain files.
 * Absent values are null.
 */
private[sql] final class FollowedEntry(found: Option[LoadedEntry]) {
  def hasChangelogs: Boolean = changelogs.nonEmpty
  def id: String = found.flatMap(_.id).fold(null: String)(_.toString)
  def previous: String = found.flatMap(_.index.link).flatMap(_.previous).fold(null: String)(_.toString)
  def run: String = found.fold(null: String)(_.index.writer.run.toString)
  def host: String = found.fold(null: String)(_.index.writer.host)

  private[tools] def changelogs: Vector[SegmentKey] =
    found.fold(Vector.empty[SegmentKey])(_.index.entries.map(_.key).filter(_.kind == SegmentKind.Changelog))
}

/** The selected tables of a checkpoint, whose stores are opened when they change for the first time. */
private[tools] final class FollowedTables(
    read: ReadBatch,
    all: Seq[StoredTable],
    wanted: Seq[StoredTable],
    selection: StateSelection
) extends AutoCloseable {
  private val stores = mutable.Map.empty[String, FollowedStore]
  private val rows = wanted.map { table =>
    val followed = new FollowedRows(table)
    (table, followed, new SelectedRows(table, followed, Option(selection.where), asJson = wanted.size > 1))
  }

  def settings: SQLConf = read.settings
  def schema: StructType = rows.head._3.schema

  def changes(entry: FollowedEntry, use: InternalRow => Unit): Unit = {
    val byStore = entry.changelogs.groupBy(key => (key.operator.toInt, key.storeName))
    for {
      (table, followed, selected) <- rows
      key <- byStore.getOrElse((table.operator, table.shownStore), Vector.empty)
      if selection.partitions(table).contains(key.partition)
    } {
      followed.current = Some(store(table, key) -> key)
      selected.of(key.partition)(use)
    }
  }

  override def close(): Unit =
    try Causes.closingAll(stores.valuesIterator)(_.close())
    finally stores.clear()

  private def store(table: StoredTable, key: SegmentKey): FollowedStore = stores.getOrElseUpdate(
    key.storeDirectory,
    new FollowedStore(read, all.filter(of => of.operator == table.operator && of.store == table.store), key.partition)
  )
}

/** The changes of one table's store: rows of a change type, the key and the value, which is null for a deletion. */
private[tools] final class FollowedRows(table: StoredTable) extends Rows {
  var current: Option[(FollowedStore, SegmentKey)] = None

  override val schema: StructType = new StructType()
    .add("change_type", StringType, nullable = false)
    .add("key", table.family.keySchema)
    .add("value", table.family.valueSchema)
    .add("partition_id", IntegerType, nullable = false)

  override def of(partition: Int)(use: Iterator[InternalRow] => Unit): Unit = current.foreach { case (store, key) =>
    store.changes(table, key) { records =>
      use(records.map { case (kind, of, value) => new GenericInternalRow(Array[Any](kind, of, value, partition)) })
    }
  }
}

/** One partition of a store with the column families of its tables, open for the decoding of its changelogs. */
private[tools] final class FollowedStore(read: ReadBatch, tables: Seq[StoredTable], partition: Int)
    extends AutoCloseable {
  private val provider: StateStoreProvider with SupportsFineGrainedReplay = {
    val reader = new OpenedReader(read, tables.head, partition)
    val opened = reader.openedProvider
    // Spark's reader has registered the first.
    if (tables.sizeIs > 1) Causes.cleaningUp(opened.close()) {
      val store = opened.getStore(read.batch + 1, reader.checkpointId)
      try FollowedStore.register(store, tables.tail)
      finally store.abort()
    }
    opened.asInstanceOf[StateStoreProvider with SupportsFineGrainedReplay]
  }

  private val everyValue =
    tables.filter(_.hasManyValues).map(of => of.familyName -> new EveryValue(provider, of)).toMap

  /** The records of a changelog that are of this table. A row is valid until the next is read. */
  def changes(table: StoredTable, key: SegmentKey)(use: Iterator[(UTF8String, UnsafeRow, UnsafeRow)] => Unit): Unit = {
    val family = Option.when(table.usesFamilies)(table.familyName)
    val records = provider.getStateStoreChangeDataReader(key.version, key.version, family, key.checkpointId)
    // Of a deletion the value is null.
    def named(kind: RecordType.Value) = UTF8String.fromString(RecordType.getRecordTypeAsString(kind))
    try use(records.flatMap { case (kind, of, value, _) =>
        def others = everyValue.get(table.familyName).filter(_ => value != null).iterator.flatMap(_.others)
        Iterator((named(kind), of, value)) ++ others.map((EveryValue.Append, of, _))
      })
    finally records.closeIfNeeded()
  }

  override def close(): Unit = provider.close()
}

private[tools] object FollowedStore {

  /** Creates the encoders of the column families of a store. */
  def register(store: StateStore, tables: Seq[StoredTable]): Unit = tables.foreach { of =>
    import of.family.{keySchema, valueSchema}
    store.createColFamilyIfAbsent(
      of.familyName,
      keySchema,
      valueSchema,
      of.encoder,
      of.hasManyValues,
      isInternal = of.isTimers
    )
  }
}
