// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.nio.channels.Channels
import java.util.Base64

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.{ArrowStreamReader, ArrowStreamWriter}
import org.apache.arrow.vector.types.pojo.Schema

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/**
 * Looks keys of one table of a copy up, for any number of threads. Keys and values are Arrow streams of a row for each key;
 * they are returned in Base64, because py4j decodes arrays byte by byte in Python.
 *
 * A single key that is found in the store where it is likely waits for that store alone. Any other waits for a batch that is
 * being applied: only as of one batch in all stores it is in none. Several keys are looked up as of one batch.
 */
private[sql] final class KeyLookup(copy: StateCopy, selection: StateSelection) {
  // Guarded by this; another when the copy was loaded again.
  private var prepared = Option.empty[PreparedLookup]

  /** The columns of a key: a stream without rows. */
  def keys: String = text(copy.reading(prepare(_).keys))

  /** The values of keys, each with the batch and its partition: see `PreparedLookup`. */
  def get(keys: Array[Byte]): String = text(ArrowBytes.read(keys) { asked =>
    val single = if (asked.numRows == 1) copy.now.flatMap(prepare(_).likely(asked.getRow(0))) else None
    single.getOrElse(copy.reading(prepare(_).anywhere(asked)))
  })

  private def text(bytes: Array[Byte]): String = Base64.getEncoder.encodeToString(bytes)

  private def prepare(loaded: LoadedCopy): PreparedLookup = synchronized(prepared.filter(_.loaded eq loaded).getOrElse {
    val made = selection.of(loaded.tables) match {
      case Seq(table) => new PreparedLookup(loaded, table)
      case several => throw new IllegalArgumentException(
          s"name one of these by operator, store and column family: ${several.mkString("; ")}"
        )
    }
    prepared = Some(made)
    made
  })
}

private final class PreparedLookup(val loaded: LoadedCopy, table: StoredTable) {
  private val attributes = DataTypeUtils.toAttributes(SelectedRows.sendable(table.family.keySchema))
  // As it is asked for, and as Spark's operators group it: with 0.0 for -0.0, and one NaN. A state variable has any.
  private val (asAsked, asGrouped): (UnsafeProjection, Option[UnsafeProjection]) = {
    // A null in a column without nulls is in no key.
    val columns = DataTypeUtils.toAttributes(table.family.keySchema).map(_.withNullability(true))
    val normalized = columns.map(NormalizeFloatingNumbers.normalize)
    def projection(to: Seq[Expression]) = GenerateUnsafeProjection.generate(to, columns)
    (projection(columns), Option.when(normalized != columns)(projection(normalized)))
  }

  // Where a key is if the operator distributes rows by all its columns.
  private val partition: UnsafeProjection = {
    val columns = DataTypeUtils.toAttributes(table.family.keySchema)
    UnsafeProjection.create(Seq(HashPartitioning(columns, table.partitions).partitionIdExpression), columns)
  }

  // Made once, not for each lookup.
  private val found: Schema = ArrowRows.schema(
    new StructType()
      .add("batch", LongType, nullable = false)
      .add("committed_at", TimestampType)
      .add("partition", IntegerType)
      .add("value", table.cellType(SelectedRows.sendable(table.family.valueSchema)).asNullable)
  )

  val keys: Array[Byte] =
    ArrowBytes.write(ArrowRows.schema(StructType(attributes.map(of => StructField(of.name, of.dataType)))), Nil)

  /** The values of a key in the store where it is likely; none if it is not there. */
  def likely(asked: InternalRow): Option[Array[Byte]] =
    valuesIn(asked, Iterator(_)).map(of => ArrowBytes.write(found, Seq(row(Some(of), of.at))))

  /** The values of keys in any store; null without the key. */
  def anywhere(asked: ColumnarBatch): Array[Byte] = {
    val rows = (0 until asked.numRows).map { of =>
      def every(first: Int) = Iterator(first) ++ (0 until table.partitions).iterator.filter(_ != first)
      row(valuesIn(asked.getRow(of), every), loaded.batch)
    }
    ArrowBytes.write(found, rows)
  }

  /** The values of a key in some partitions, given the one where it is likely. */
  private def valuesIn(asked: InternalRow, partitions: Int => Iterator[Int]): Option[CopiedValues] =
    (for {
      (key, first) <- located(asked).iterator
      at <- partitions(first)
      store <- loaded.store(table, at)
      values <- store.get(table, key)
    } yield values).nextOption()

  // Projections have buffers.
  private def located(asked: InternalRow): Seq[(UnsafeRow, Int)] = synchronized {
    val row = asAsked(asked).copy()
    // Of the row, not of what is asked for: a null in an array of Arrow's cannot be normalized.
    (row +: asGrouped.map(_(row).copy()).toSeq).distinct.map(key => (key, partition(key).getInt(0)))
  }

  private def row(of: Option[CopiedValues], at: CopiedBatch): InternalRow = {
    val values = table.cell(of.fold(Seq.empty[UnsafeRow])(_.values))
    new GenericInternalRow(Array[Any](at.number, at.committedMicros, of.fold(null: Any)(_.partition), values))
  }
}

/** Rows as bytes of an Arrow stream. */
private[tools] object ArrowBytes {

  def write(schema: Schema, rows: Seq[InternalRow]): Array[Byte] = Using.Manager { use =>
    val bytes = new ByteArrayOutputStream
    val root = use(VectorSchemaRoot.create(schema, use(ArrowRows.newAllocator())))
    val stream = use(new ArrowStreamWriter(root, null, Channels.newChannel(bytes)))
    val writer = ArrowWriter.create(root)
    rows.foreach(writer.write)
    writer.finish()
    stream.start()
    if (rows.nonEmpty) stream.writeBatch()
    stream.end()
    bytes.toByteArray
  }.get

  /** Calls `use` with the only batch of rows. */
  def read[T](bytes: Array[Byte])(use: ColumnarBatch => T): T = Using.Manager { closed =>
    val stream = closed(new ArrowStreamReader(new ByteArrayInputStream(bytes), closed(ArrowRows.newAllocator())))
    if (!stream.loadNextBatch()) throw new IllegalArgumentException("a key is missing")
    val columns = stream.getVectorSchemaRoot.getFieldVectors.asScala.map(new ArrowColumnVector(_): ColumnVector)
    use(new ColumnarBatch(columns.toArray, stream.getVectorSchemaRoot.getRowCount))
  }.get
}
