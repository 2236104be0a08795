// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.concurrent.locks.ReentrantReadWriteLock

import scala.collection.mutable
import scala.util.control.NonFatal

import sparkdstl.log.error.Causes
import sparkdstl.log.format.SegmentKey

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
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
 * are applied. Nothing is committed. Any number of threads may read: a key as of the batch that its store has, tables as of one
 * batch in all stores.
 */
private[sql] final class StateCopy private[tools] (selection: StateSelection) extends AutoCloseable {
  // Held for reading by those who read several stores, for writing while a batch is applied: fair, so that readers do not
  // keep a batch waiting.
  private val lock = new ReentrantReadWriteLock(true)

  // Changed under the lock.
  @volatile private var loaded = Option.empty[LoadedCopy]

  /** Loads the state as of a batch, in place of the present one, which can be read meanwhile. */
  private[tools] def load(read: ReadBatch, all: Seq[StoredTable], committed: Long): Unit =
    replace(Some(new LoadedCopy(read, all, selection, CopiedBatch(read.batch, committed))))

  /** Applies the batch after the present one. After an error the copy is empty, and has to be loaded again. */
  def apply(entry: FollowedEntry, batch: Long, committed: Long): Unit = {
    val copy = present
    SQLConf.withExistingConf(copy.read.settings) {
      // Opening reads from storage.
      val changes = copy.opened(entry.changelogs)
      try exclusively(copy.apply(changes, CopiedBatch(batch, committed)))
      catch {
        case NonFatal(error) =>
          close()
          throw error
      } finally Causes.closingAll(changes.valuesIterator)(_.closeIfNeeded())
    }
  }

  /** The tables: a line each, with the schemas of keys and values. */
  def tables: String = reading { copy =>
    copy.tables.map(of => s"${of.line}\t${of.family.keySchema.toDDL}\t${of.family.valueSchema.toDDL}").mkString("\n")
  }

  /** A way to look keys of the one selected table up. */
  def lookup(selection: StateSelection): KeyLookup = new KeyLookup(this, selection)

  /** Sends the rows of the selected tables. */
  def table(selection: StateSelection, port: Int, secret: String): SentCopy =
    new SentCopy(this, selection, port, secret)

  override def close(): Unit = replace(None)

  /** Reads as of one batch: the next is applied afterwards. */
  private[tools] def reading[T](use: LoadedCopy => T): T = {
    lock.readLock().lock()
    try use(present)
    finally lock.readLock().unlock()
  }

  /** The stores, to which a batch may be applied meanwhile; none if they are not loaded. They can be closed at any time. */
  private[tools] def now: Option[LoadedCopy] = loaded

  private def present: LoadedCopy =
    loaded.getOrElse(throw StateCopy.closed())

  private def exclusively[T](change: => T): T = {
    lock.writeLock().lock()
    try change
    finally lock.writeLock().unlock()
  }

  private def replace(by: Option[LoadedCopy]): Unit = exclusively {
    val before = loaded
    loaded = by
    before.foreach(_.close())
  }
}

private object StateCopy {
  def closed(): Throwable = new IllegalStateException("the copy of the state is closed")
}

/** The stores of a copy, loaded as of the batch `began`. */
private[tools] final class LoadedCopy(
    val read: ReadBatch,
    all: Seq[StoredTable],
    selection: StateSelection,
    began: CopiedBatch
) extends AutoCloseable {
  private val stores = mutable.LinkedHashMap.empty[(Int, String, Int), CopiedStore]
  // None after a failure in the middle of a batch.
  private var at = Option(began)

  /** The tables whose stores are copied. */
  val tables: Seq[StoredTable] = {
    val wanted = selection.of(all).map(of => (of.operator, of.store)).toSet
    all.filter(of => wanted((of.operator, of.store)))
  }

  try InParallel.inOrder(
      for {
        families <- tables.groupBy(of => (of.operator, of.store)).values.toSeq
        partition <- selection.partitions(families.head)
      } yield (use: CopiedStore => Unit) => use(new CopiedStore(read, families, partition, began))
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

  /** The batch that all stores have. Fails after a failure in the middle of a batch. */
  def batch: CopiedBatch = at.getOrElse(throw StateCopy.closed())

  def opened(changelogs: Vector[SegmentKey]): Map[CopiedStore, StateStoreChangelogReader] = {
    val readers = mutable.LinkedHashMap.empty[CopiedStore, StateStoreChangelogReader]
    Causes.cleaningUp(Causes.closingAll(readers.valuesIterator)(_.closeIfNeeded())) {
      for (key <- changelogs; store <- stores.get((key.operator.toInt, key.storeName, key.partition)))
        readers.put(store, store.changes(key))
    }
    readers.toMap
  }

  /** Applies a batch to one store after the other. */
  def apply(changes: Map[CopiedStore, StateStoreChangelogReader], batch: CopiedBatch): Unit = {
    at = None
    stores.valuesIterator.foreach(store => store.apply(changes.get(store), batch))
    at = Some(batch)
  }

  override def close(): Unit = Causes.closingAll(stores.valuesIterator)(_.close())
}

/** One partition of a store, with changes that are never committed. */
private[tools] final class CopiedStore(
    read: ReadBatch,
    val tables: Seq[StoredTable],
    val partition: Int,
    began: CopiedBatch
) extends AutoCloseable {
  // Guarded by this. None after a failure in the middle of a batch, and of a closed store.
  private var at = Option(began)

  private val reader = new OpenedReader(read, tables.head, partition)
  private val provider = reader.openedProvider.asInstanceOf[RocksDBStateStoreProvider]
  private val store = Causes.cleaningUp(provider.close()) {
    // Without a writer of changelogs, which a store for writing has.
    val loaded = provider.getReadStore(read.batch + 1, reader.checkpointId)
    if (tables.head.usesFamilies) FollowedStore.register(loaded, tables)
    loaded.asInstanceOf[RocksDBStateStoreProvider#RocksDBStateStore]
  }

  def changes(key: SegmentKey): StateStoreChangelogReader =
    store.dbInstance().fileManager.getChangelogReader(key.version, key.checkpointId)

  /** Applies the records of a batch, if it has changed this store, as RocksDB's own replay does. */
  def apply(records: Option[StateStoreChangelogReader], batch: CopiedBatch): Unit = synchronized {
    at = None
    val database = store.dbInstance()
    for (changes <- records; (kind, key, value) <- changes)
      ReplayShims.apply(database, tables.head.usesFamilies, kind, key, value)
    at = Some(batch)
  }

  /** The values of a key, as of the batch that this store has; None without either. */
  def get(table: StoredTable, key: UnsafeRow): Option[CopiedValues] = synchronized {
    at.map(CopiedValues(partition, table.valuesOf(store, key), _)).filter(_.values.nonEmpty)
  }

  /** Calls `use` with the rows of a table as Spark's reader returns them. */
  def rows(table: StoredTable)(use: Iterator[InternalRow] => Unit): Unit = synchronized {
    val rows = new OpenedReader(read, table, partition) {
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
    at = None
    try store.abort()
    finally provider.close()
  }
}

/** The values of a key, the partition that has them, and the batch as of which. */
private[tools] final case class CopiedValues(partition: Int, values: Seq[UnsafeRow], at: CopiedBatch)

/** The rows of a copied table, as `StateTools.state` sends those of storage. */
private[tools] final class CopiedRows(copy: LoadedCopy, table: StoredTable) extends Rows {
  override val schema: StructType = copy.read.schema(table, changes = false)

  override def of(partition: Int)(use: Iterator[InternalRow] => Unit): Unit =
    copy.store(table, partition).foreach(_.rows(table)(use))
}

/** Rows of a copy that are sent, and the batch that they are of. */
private[sql] final class SentCopy(copy: StateCopy, selection: StateSelection, port: Int, secret: String) {
  @volatile private var at = CopiedBatch(-1, -1)

  val rows: SentRows = new SentRows(() =>
    copy.reading { loaded =>
      at = loaded.batch
      SQLConf.withExistingConf(loaded.read.settings) {
        selection.send(loaded.tables, port, secret)(new CopiedRows(loaded, _))
      }
    }
  )

  def batch: Long = at.number
  def committed: Long = at.committed
}
