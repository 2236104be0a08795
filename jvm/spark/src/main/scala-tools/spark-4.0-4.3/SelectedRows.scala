// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.{Analyzer, FunctionRegistry, TableFunctionRegistry}
import org.apache.spark.sql.catalyst.catalog.{InMemoryCatalog, SessionCatalog}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Rows as they are sent: filtered, with the name of their table, and with Spark's columns; rows of several schemas have key and
 * value as JSON instead.
 */
private[tools] final class SelectedRows(table: StoredTable, rows: Rows, where: Option[String], asJson: Boolean) {
  import SelectedRows._

  private val attributes = DataTypeUtils.toAttributes(rows.schema)
  // Before any row is read: the condition may be wrong.
  private val first = new Compiled
  private val others = {
    val data = attributes.filterNot(attribute => own(attribute.name))
    if (asJson) data.filter(isChange) else data
  }
  private val partition = attributes.indexWhere(_.name == PartitionColumn)
  private val store = UTF8String.fromString(table.shownStore)
  private val family = UTF8String.fromString(table.shownFamily)

  val schema: StructType = StructType(
    Place ++ others.map(of => StructField(of.name, sentType(of))) ++
      first.texts.toVector.flatMap(_._1.map(StructField(_, StringType)))
  )

  private val ordinals = others.map(attribute => attributes.indexOf(attribute) -> attribute.dataType).toArray

  /** Iterates over the rows of a partition as they are sent. */
  def of(partitionId: Int)(use: InternalRow => Unit): Unit = rows.of(partitionId) { found =>
    val compiled = new Compiled
    found.filter(compiled.accepts).foreach { row =>
      val values = new Array[Any](schema.length)
      values(0) = table.operator
      values(1) = row.getInt(partition)
      values(2) = store
      values(3) = family
      var at = Place.length
      ordinals.foreach { case (ordinal, dataType) =>
        values(at) = row.get(ordinal, dataType)
        at += 1
      }
      compiled.texts.foreach { case (names, projection) =>
        val projected = projection(row)
        names.indices.foreach { index =>
          values(at) = projected.getUTF8String(index)
          at += 1
        }
      }
      use(new GenericInternalRow(values))
    }
  }

  /** Spark's expressions, for one thread: some have buffers. */
  private final class Compiled {
    val accepts: InternalRow => Boolean = where.fold((_: InternalRow) => true) { text =>
      val predicate = Predicate.create(condition(text, attributes), attributes)
      row => predicate.eval(row)
    }

    val texts: Option[(Seq[String], UnsafeProjection)] =
      Option.when(asJson)(json(attributes.filterNot(of => own(of.name) || isChange(of))))
  }

  private def json(data: Seq[AttributeReference]): (Seq[String], UnsafeProjection) = {
    val (sides, rest) = data.partition(attribute => Sides(attribute.name))
    val texts = sides.map(side => side.name -> toJson(side))
    val value = rest match {
      case Seq() => Nil
      case Seq(only) => Seq("value" -> toJson(only))
      case several =>
        val fields = several.flatMap(of => Seq(Literal(of.name), of))
        Seq("value" -> toJson(CreateNamedStruct(fields)))
    }
    val all = texts ++ value
    (all.map(_._1), UnsafeProjection.create(all.map(_._2), attributes))
  }

  private def toJson(expression: Expression): Expression = {
    // Spark's `to_json` accepts structs, lists and maps only.
    val nested = expression.dataType match {
      case struct: StructType => numbered(expression, struct)
      case _: ArrayType | _: MapType => expression
      case _ => CreateNamedStruct(Seq(Literal("value"), expression))
    }
    replaced(StructsToJson(JsonOptions, nested, Some(SQLConf.get.sessionLocalTimeZone)))
  }
}

private[tools] object SelectedRows {
  private val PartitionColumn = "partition_id"
  private val BatchColumn = "batch_id"
  private val own = Set(PartitionColumn, BatchColumn)

  // By default Spark cuts microseconds off and leaves nulls out: keys that differ would be the same text.
  private val JsonOptions = Map(
    "timestampFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields" -> "false"
  )
  private val Sides = Set("key", "before", "after")
  private val Place = Seq(
    StructField("operator", IntegerType, nullable = false),
    StructField("partition", IntegerType, nullable = false),
    StructField("store", StringType, nullable = false),
    StructField("column_family", StringType, nullable = false)
  )

  /** A value may be missing as a whole: then Parquet wants all inside of it to be nullable. */
  private def sentType(of: Attribute): DataType = {
    val sent = sendable(of.dataType)
    if (of.name == "key") sent else sent.asNullable
  }

  private def isChange(attribute: Attribute): Boolean = Set("change", "change_type")(attribute.name)

  /** Arrow for Python has no year intervals: they are sent as their number of months. */
  private def sendable(dataType: DataType): DataType = dataType match {
    case _: YearMonthIntervalType => IntegerType
    case ArrayType(element, containsNull) => ArrayType(sendable(element), containsNull)
    case MapType(key, value, containsNull) => MapType(sendable(key), sendable(value), containsNull)
    case struct: StructType => sendable(struct)
    case other => other
  }

  def sendable(struct: StructType): StructType =
    StructType(struct.fields.map(field => field.copy(dataType = sendable(field.dataType))))

  /** Numbers columns of one name, as Arrow does: a reader of JSON takes one of them alone. */
  private def numbered(expression: Expression, struct: StructType): Expression = {
    val places = struct.fieldNames.indices.groupBy(struct.fieldNames(_))
    val names = struct.fieldNames.indices.map { at =>
      val name = struct.fieldNames(at)
      if (places(name).size > 1) s"${name}_${places(name).indexOf(at)}" else name
    }
    if (names == struct.fieldNames.toSeq) expression
    else Cast(expression, StructType(struct.fields.zip(names).map { case (field, name) => field.copy(name = name) }))
  }

  /** Spark's analyzer with its built-in functions, without a catalog. */
  private def analyzer = new Analyzer(
    new SessionCatalog(new InMemoryCatalog, FunctionRegistry.builtin, TableFunctionRegistry.builtin)
  )

  private def condition(text: String, attributes: Seq[AttributeReference]): Expression = {
    val parsed = CatalystSqlParser.parseExpression(text)
    val spark = analyzer
    val plan = spark.execute(Filter(parsed, LocalRelation(attributes)))
    spark.checkAnalysis(plan)
    plan match {
      // Also no call of Java's methods, which Spark counts among these.
      case Filter(resolved, _) if !resolved.deterministic =>
        throw new IllegalArgumentException(s"$text depends on more than the row")
      case Filter(resolved, LocalRelation(_, _, _, _)) => replaced(resolved)
      case _ => throw new IllegalArgumentException(s"$text is not a condition that tells for each row by itself")
    }
  }

  /** Replaces functions that Spark defines by means of others. */
  private def replaced(expression: Expression): Expression = expression.transformUp {
    case named: RuntimeReplaceable => replaced(named.replacement)
  }
}
