// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.concurrent.locks.ReentrantReadWriteLock

import scala.collection.mutable
import scala.util.control.NonFatal

import sparkdstl.log.format.SegmentKey

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.datasources.v2.state.{StatePartitionReader, StateStoreInputPartition}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/**
 * A batch, and when it was committed.
 *
 * @param committed in milliseconds by the storage's clock; negative if unknown
 */
private[tools] final case class CopiedBatch(number: Long, committed: Long) {

  /** For a row. */
  def committedMicros: Any = if (committed < 0) null else committed * 1000
}

/**
 * A local copy of the state: stores of Spark's provider, loaded as of one batch, to which the change records of each later batch
 * are applied. Nothing is committed. Reads see whole batches; any number of threads may read.
 */
private[sql] final class StateCopy private[tools] (selection: StateSelection) extends AutoCloseable {
  // Held for reading by readers, for writing while a batch is applied: fair, so that readers do not keep a batch waiting.
  private val lock = new ReentrantReadWriteLock(true)

  // Guarded by the lock.
  private var loaded = Option.empty[LoadedCopy]
  private var at = CopiedBatch(-1, -1)

  /** Loads the state as of a batch, in place of the present one, which can be read meanwhile. */
  private[tools] def load(read: ReadBatch, all: Seq[StoredTable], committed: Long): Unit =
    replace(Some(new LoadedCopy(read, all, selection)), CopiedBatch(read.batch, committed))

  /** Applies the batch after the present one. After an error the copy is empty, and has to be loaded again. */
  def apply(entry: FollowedEntry, batch: Long, committed: Long): Unit = {
    val copy = present
    SQLConf.withExistingConf(copy.read.settings) {
      // Opening reads from storage.
      val changes = copy.opened(entry.changelogs)
      try exclusively {
          changes.foreach { case (store, records) => store.apply(records) }
          at = CopiedBatch(batch, committed)
        }
      catch {
        case NonFatal(error) =>
          close()
          throw error
      } finally changes.foreach(_._2.closeIfNeeded())
    }
  }

  /** The tables: a line each, with the schemas of keys and values. */
  def tables: String = reading { (copy, _) =>
    copy.tables.map(of => s"${of.line}\t${of.family.keySchema.toDDL}\t${of.family.valueSchema.toDDL}").mkString("\n")
  }

  /** A way to look keys of the one selected table up. */
  def lookup(selection: StateSelection): KeyLookup = new KeyLookup(this, selection)

  /** Sends the rows of the selected tables. */
  def table(selection: StateSelection, port: Int, secret: String): SentCopy =
    new SentCopy(this, selection, port, secret)

  override def close(): Unit = replace(None, CopiedBatch(-1, -1))

  /** Reads as of one batch: the next is applied afterwards. */
  private[tools] def reading[T](use: (LoadedCopy, CopiedBatch) => T): T = {
    lock.readLock().lock()
    try use(present, at)
    finally lock.readLock().unlock()
  }

  private def present: LoadedCopy =
    loaded.getOrElse(throw new IllegalStateException("the copy of the state is closed"))

  private def exclusively[T](change: => T): T = {
    lock.writeLock().lock()
    try change
    finally lock.writeLock().unlock()
  }

  private def replace(by: Option[LoadedCopy], of: CopiedBatch): Unit = exclusively {
    val before = loaded
    loaded = by
    at = of
    before.foreach(_.close())
  }
}

/** The stores of a copy. */
private[tools] final class LoadedCopy(val read: ReadBatch, all: Seq[StoredTable], selection: StateSelection)
    extends AutoCloseable {
  private val stores = mutable.Map.empty[(Int, String, Int), CopiedStore]

  /** The tables whose stores are copied. */
  val tables: Seq[StoredTable] = {
    val wanted = selection.of(all).map(of => (of.operator, of.store)).toSet
    all.filter(of => wanted((of.operator, of.store)))
  }

  try InParallel.inOrder(
      for {
        families <- tables.groupBy(of => (of.operator, of.store)).values.toSeq
        partition <- selection.partitions(families.head)
      } yield (use: CopiedStore => Unit) => use(new CopiedStore(read, families, partition))
    )(_.close()) { store =>
      stores((store.tables.head.operator, store.tables.head.shownStore, store.partition)) = store
    }
  catch {
    case NonFatal(error) =>
      close()
      throw error
  }

  def store(table: StoredTable, partition: Int): Option[CopiedStore] =
    stores.get((table.operator, table.shownStore, partition))

  def opened(changelogs: Vector[SegmentKey]): Vector[(CopiedStore, StateStoreChangelogReader)] = for {
    key <- changelogs
    store <- stores.get((key.operator.toInt, key.storeName, key.partition))
  } yield store -> store.changes(key)

  override def close(): Unit = stores.valuesIterator.foreach(_.close())
}

/** One partition of a store, with changes that are never committed. */
private[tools] final class CopiedStore(read: ReadBatch, val tables: Seq[StoredTable], val partition: Int)
    extends AutoCloseable {
  private val reader = new OpenedReader(read, tables.head, partition)
  private val provider = reader.openedProvider.asInstanceOf[RocksDBStateStoreProvider]
  private val store = {
    // Without a writer of changelogs, which a store for writing has.
    val loaded = provider.getReadStore(read.batch + 1, reader.checkpointId)
    if (tables.head.usesFamilies) FollowedStore.register(loaded, tables)
    loaded.asInstanceOf[RocksDBStateStoreProvider#RocksDBStateStore]
  }

  def changes(key: SegmentKey): StateStoreChangelogReader =
    store.dbInstance().fileManager.getChangelogReader(key.version, key.checkpointId)

  /** Applies records as RocksDB's own replay does. */
  def apply(records: StateStoreChangelogReader): Unit = synchronized {
    val database = store.dbInstance()
    records.foreach { case (kind, key, value) =>
      ReplayShims.apply(database, tables.head.usesFamilies, kind, key, value)
    }
  }

  /** The values of a key; none without the key. */
  def get(table: StoredTable, key: UnsafeRow): Seq[UnsafeRow] = synchronized(table.valuesOf(store, key))

  /** Calls `use` with the rows of a table as Spark's reader returns them. */
  def rows(table: StoredTable, schema: StructType)(use: Iterator[InternalRow] => Unit): Unit = synchronized {
    val rows = new StatePartitionReader(
      read.storeConf,
      read.serializable,
      new StateStoreInputPartition(partition, read.scan, ReadOptions.of(read, table, changes = false)),
      schema,
      table.encoder,
      table.variable,
      Some(table.family),
      table.schemas,
      table.familyOfMany
    ) {
      override protected lazy val provider: StateStoreProvider = new RocksDBStateStoreProvider {
        override def getReadStore(version: Long, id: Option[String]): StateStore = store
      }
    }
    // Reading to the end closes the iterator of RocksDB.
    val all = Iterator.continually(rows).takeWhile(_.next()).map(_.get())
    try use(all)
    finally all.foreach(_ => ())
  }

  override def close(): Unit = synchronized {
    try store.abort()
    finally provider.close()
  }
}

/** The rows of a copied table, as `StateTools.state` sends those of storage. */
private[tools] final class CopiedRows(copy: LoadedCopy, table: StoredTable) extends Rows {
  override val schema: StructType = copy.read.schema(table, changes = false)

  override def of(partition: Int)(use: Iterator[InternalRow] => Unit): Unit =
    copy.store(table, partition).foreach(_.rows(table, schema)(use))
}

/** Rows of a copy that are sent, and the batch that they are of. */
private[sql] final class SentCopy(copy: StateCopy, selection: StateSelection, port: Int, secret: String) {
  @volatile private var at = CopiedBatch(-1, -1)

  val rows: SentRows = new SentRows(() =>
    copy.reading { (loaded, batch) =>
      at = batch
      SQLConf.withExistingConf(loaded.read.settings) {
        selection.send(loaded.tables, port, secret)(new CopiedRows(loaded, _))
      }
    }
  )

  def batch: Long = at.number
  def committed: Long = at.committed
}
