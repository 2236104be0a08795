// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream, EOFException}
import java.nio.file.{Files, Path => LocalPath}
import java.util.concurrent.ConcurrentHashMap
import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.streaming.operators.stateful.StatePartitionKeyExtractorFactory
import org.apache.spark.sql.execution.streaming.state.DropLastNFieldsStatePartitionKeyExtractor
import org.apache.spark.sql.internal.SQLConf

/**
 * Writes the state of a checkpoint, as of one batch, into another number of partitions, as plain snapshots that only the commit
 * entry of the next batch makes visible. Python calls it over py4j, store by store: it reads partitions, which sorts their rows
 * into files on the local disk by their new partitions, then writes these; several at once, each in a thread.
 *
 * @param root       the checkpoint
 * @param settings   of Spark, among them `spark.hadoop.` for the storage
 * @param before     the newest committed batch
 * @param after      the next one, which only changes the number of partitions
 * @param partitions the new number
 */
private[sql] final class StateRepartition(
    root: String,
    settings: JavaMap[String, String],
    before: StateBatch,
    after: StateBatch,
    partitions: Int
) {
  private val chosen = new GivenSettings(settings.asScala.toMap)
  private val place = chosen.qualified(root)
  private val source = chosen.at(place, chosen.reading(before))
  private val stores = new WholeStores(source, before.number)
  private val number = source.settings.getConf(SQLConf.SHUFFLE_PARTITIONS)

  /** @param isWhole whether the operator has one partition whatever the number */
  def store(operator: Int, name: String, isWhole: Boolean): StoreRepartition =
    new StoreRepartition(stores.find(operator, name).map { store =>
      store -> Option.when(!isWhole)(() => new PartitionOfRow(store, number, partitions, source.settings))
    })

  /** One store of an operator in all its partitions; `found` has the partition of each of its rows, without one the only one. */
  final class StoreRepartition(found: Try[(WholeStore, Option[() => PartitionOfRow])]) {
    private val spill = new RowSpill
    // Both guarded by this.
    private var wasRead = RowSum.none
    private var wasWritten = RowSum.none

    /** Reads a partition, and keeps those of its rows that are of the new partitions from `first` to `until`. */
    def read(partition: Int, first: Int, until: Int): RepartitionedRows = counted { (store, partitionOf) =>
      val id = store.idIn(before.ids(store.operator), partition)
      var sum = RowSum.none
      store.read(source, partition, before.number + 1, id)(_.foreach { row =>
        val to = partitionOf.fold(0)(_.movedFrom(partition, row))
        if (to >= first && to < until) {
          spill.put(to, row)
          sum += row
        }
      })
      synchronized(wasRead += sum)
      new RepartitionedRows(sum.rows, null, 0, null)
    }

    /** Writes a new partition, and reads it again. */
    def write(partition: Int): RepartitionedRows = counted { (store, partitionOf) =>
      val target = chosen.at(place, chosen.writing(after))
      val id = spill.rows(partition)(store.write(target, partition, after.number, _))
      val plain = chosen.at(place, chosen.readingPlain(after))
      val sum = store.read(plain, partition, after.number + 1, id)(RowSum.during(_)(_.foreach { row =>
        if (partitionOf.exists(_.of(row) != partition))
          throw new IllegalStateException(s"a row of partition $partition was read back that is of another one")
      }))
      synchronized(wasWritten += sum)
      new RepartitionedRows(sum.rows, id.orNull, store.placeOfId, null)
    }

    /** Whether all rows that were read were written and read again. */
    def isComplete: Boolean = synchronized(wasRead == wasWritten)

    private def counted(work: (WholeStore, Option[PartitionOfRow]) => RepartitionedRows): RepartitionedRows =
      try {
        val (store, partitionOf) = found.get
        // Spark's expressions have buffers: each is for one thread.
        work(store, partitionOf.map(_()))
      } catch { case NonFatal(error) => new RepartitionedRows(0, null, 0, SentRows.text(error)) }
  }
}

/**
 * Rows of a partition that were read or written.
 *
 * @param id      the checkpoint id of what was written, or null
 * @param place   the place of that id among those of the partition
 * @param failure the error's text, or null
 */
private[sql] final class RepartitionedRows(val rows: Long, val id: String, val place: Int, val failure: String)

/**
 * The partition in which a query looks for a row, of so many before and after: Spark's hash of the part of the key by which an
 * operator's input is distributed.
 */
private[tools] final class PartitionOfRow(store: WholeStore, before: Int, after: Int, settings: SQLConf) {
  private val families = store.keptIn.map(index => index -> new OfFamily(store.families(index))).toMap

  def of(row: WholeRow): Int = families(row.family).of(row.key)._2

  /** The new partition of a row of partition `old`; fails if the hash has not put it there. */
  def movedFrom(old: Int, row: WholeRow): Int = {
    val (expected, moved) = families(row.family).of(row.key)
    if (expected != old)
      throw new IllegalStateException(
        s"a row of partition $old of $before belongs to partition $expected by the hash of its key: the query keeps rows where the " +
          "operator before this one has put them, as one that began with Spark 3.2 or older does " +
          s"(${SQLConf.STATEFUL_OPERATOR_USE_STRICT_DISTRIBUTION.key}=false). Its number of partitions cannot be changed"
      )
    moved
  }

  private final class OfFamily(family: WholeFamily) {
    private val extractor =
      // In the fourth format of a join's state a key ends with a time, which Spark's extractor keeps.
      if (StoredTable.endsWithTime(family.name))
        new DropLastNFieldsStatePartitionKeyExtractor(family.schema.keySchema, 1)
      else SQLConf.withExistingConf(settings)(StatePartitionKeyExtractorFactory.create(
        store.operatorName,
        family.schema.keySchema,
        store.name,
        family.name,
        // Of joins the keys depend on the format of the state.
        Some(settings.getConf(SQLConf.STREAMING_JOIN_STATE_FORMAT_VERSION)),
        family.variable
      ))
    private val partitions = {
      val fields = extractor.partitionKeySchema.fields.toSeq.zipWithIndex.map { case (field, index) =>
        BoundReference(index, field.dataType, field.nullable)
      }
      UnsafeProjection.create(Seq(before, after).map(HashPartitioning(fields, _).partitionIdExpression))
    }
    private val key = new UnsafeRow(family.schema.keySchema.length)

    def of(bytes: Array[Byte]): (Int, Int) = {
      key.pointTo(bytes, bytes.length)
      val of = partitions(extractor.partitionKey(key))
      (of.getInt(0), of.getInt(1))
    }
  }
}

/** Rows on the local disk, by partition: a file each, which is deleted once its rows were read. For any number of threads. */
private[tools] final class RowSpill {
  private val files = new ConcurrentHashMap[Int, (LocalPath, DataOutputStream)]

  def put(partition: Int, row: WholeRow): Unit = {
    val (_, out) = files.computeIfAbsent(
      partition,
      _ => {
        val file = Files.createTempFile("rows", null)
        // If a failure ends the process before the rows are read.
        file.toFile.deleteOnExit()
        file -> new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file)))
      }
    )
    out.synchronized {
      out.writeInt(row.family)
      out.writeInt(row.key.length)
      out.write(row.key)
      out.writeInt(row.value.length)
      out.write(row.value)
    }
  }

  /**
   * The rows of a partition, those of each thread in the order in which it put them; `use` gets no place of values among those of
   * their key.
   */
  def rows[T](partition: Int)(use: Iterator[WholeRow] => T): T = Option(files.remove(partition)) match {
    case None => use(Iterator.empty)
    case Some((file, out)) =>
      out.close()
      val in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))
      def bytes() = in.readNBytes(in.readInt())
      def next() =
        try {
          val family = in.readInt()
          Some(new WholeRow(family, bytes(), bytes(), 0))
        } catch { case _: EOFException => None }
      try use(Iterator.continually(next()).takeWhile(_.nonEmpty).flatten)
      finally {
        in.close()
        Files.delete(file)
      }
  }
}
