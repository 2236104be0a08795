// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.config

import java.util.Locale

import scala.util.Try

/** The type of an option: its parser and a description of its values. */
sealed trait OptionType[T] {

  /** The name in the generated reference and in `options.json`. */
  def name: String

  /** Completes "must be ...". */
  def allowed: String

  /** The value, or `None` when `text` is not allowed. */
  def parse(text: String): Option[T]

  /** JSON fields for `options.json`: names of values, or bounds in the notation of a value. */
  def json: Seq[(String, String)] = Nil
}

object OptionType {
  private def quoted(text: String): String = "\"" + text + "\""

  case object Flag extends OptionType[Boolean] {
    override val name = "boolean"
    override val allowed = "true or false"
    override def parse(text: String): Option[Boolean] = text.toLowerCase(Locale.ROOT) match {
      case "true" => Some(true)
      case "false" => Some(false)
      case _ => None
    }
  }

  final case class Number(minimum: Int, maximum: Int) extends OptionType[Int] {
    override val name = "int"
    override val allowed = s"a whole number from $minimum to $maximum"
    override def parse(text: String): Option[Int] = text.toIntOption.filter(n => n >= minimum && n <= maximum)
    override def json: Seq[(String, String)] = Seq("min" -> quoted(minimum.toString), "max" -> quoted(maximum.toString))
  }

  /** A size in Spark's notation: `512k`, `10m`, `1g`; a plain number is bytes. */
  final case class Size(minimum: Long, maximum: Long) extends OptionType[Long] {
    override val name = "bytes"
    override val allowed =
      s"a size from ${Units.showSize(minimum)} to ${Units.showSize(maximum)}, such as 512k, 10m or 1g (a plain number is bytes)"
    override def parse(text: String): Option[Long] =
      Units.parseSize(text).filter(n => n >= minimum && n <= maximum)
    override def json: Seq[(String, String)] =
      Seq("min" -> quoted(Units.showSize(minimum)), "max" -> quoted(Units.showSize(maximum)))
  }

  /** A duration in Spark's notation: `500ms`, `10s`, `10min`; a plain number is milliseconds. Its value is milliseconds. */
  final case class Duration(minimumMillis: Long, maximumMillis: Long) extends OptionType[Long] {
    override val name = "duration"
    override val allowed =
      s"a duration from ${Units.showMillis(minimumMillis)} to ${Units.showMillis(maximumMillis)}, such as 500ms, 10s or 10min (a plain number is milliseconds)"
    override def parse(text: String): Option[Long] =
      Units.parseMillis(text).filter(n => n >= minimumMillis && n <= maximumMillis)
    override def json: Seq[(String, String)] =
      Seq("min" -> quoted(Units.showMillis(minimumMillis)), "max" -> quoted(Units.showMillis(maximumMillis)))
  }

  final case class Choice[T](values: (String, T)*) extends OptionType[T] {
    val names: Seq[String] = values.map(_._1)
    override val name = "enum"
    override val allowed = s"one of ${names.mkString(", ")}"
    override def parse(text: String): Option[T] = values.find(_._1.equalsIgnoreCase(text)).map(_._2)
    override def json: Seq[(String, String)] = Seq("values" -> names.map(quoted).mkString("[", ", ", "]"))
  }

  /** An absolute path or URI of a directory. */
  case object Directory extends OptionType[String] {
    override val name = "path"
    override val allowed = "an absolute path or a URI such as s3a://bucket/directory"
    override def parse(text: String): Option[String] =
      Some(text).filter { path =>
        val uri = Try(new org.apache.hadoop.fs.Path(path).toUri).toOption
        uri.exists(u => u.getPath.startsWith("/") && !u.getPath.split('/').contains(".."))
      }
  }
}

/** Spark's notation for sizes and durations (`JavaUtils.byteStringAsBytes`, `JavaUtils.timeStringAsMs`). */
private[config] object Units {
  private val Quantity = """\s*(\d{1,18})\s*([a-zA-Z]*)\s*""".r

  private val KiB = 1L << 10
  private val MiB = 1L << 20
  private val GiB = 1L << 30
  private val TiB = 1L << 40

  private val sizes: Map[String, Long] = Map("" -> 1L, "b" -> 1L, "k" -> KiB, "kb" -> KiB, "m" -> MiB, "mb" -> MiB) ++
    Map("g" -> GiB, "gb" -> GiB, "t" -> TiB, "tb" -> TiB)

  private val millis: Map[String, Long] =
    Map("" -> 1L, "ms" -> 1L, "s" -> 1000L, "m" -> 60000L, "min" -> 60000L, "h" -> 3600000L, "d" -> 86400000L)

  def parseSize(text: String): Option[Long] = parse(text, sizes)
  def parseMillis(text: String): Option[Long] = parse(text, millis)

  private def parse(text: String, units: Map[String, Long]): Option[Long] = text match {
    case Quantity(number, unit) =>
      units.get(unit.toLowerCase(Locale.ROOT)).flatMap(factor =>
        Try(Math.multiplyExact(number.toLong, factor)).toOption
      )
    case _ => None
  }

  def showSize(bytes: Long): String = show(bytes, Seq("g" -> GiB, "m" -> MiB, "k" -> KiB), "")
  def showMillis(value: Long): String = show(value, Seq("h" -> 3600000L, "min" -> 60000L, "s" -> 1000L), "ms")

  private def show(value: Long, units: Seq[(String, Long)], smallest: String): String =
    units.find { case (_, factor) => value >= factor && value % factor == 0 }
      .fold(s"$value$smallest") { case (unit, factor) => s"${value / factor}$unit" }
}
