// SPDX-License-Identifier: Apache-2.0
import sbt._

/**
 * A minor release of Spark with a build, and the versions that it is compiled against.
 *
 * @param name     such as `4.2`
 * @param version  the patch release that is compiled against
 * @param scala    the version of Scala of its distribution
 * @param hadoop   the version of its Hadoop client
 * @param fromPyPI whether its jars are taken from the package `pyspark`, because Maven Central has none
 * @param other    another version of Scala that there are distributions for
 * @param pins     the Python packages that its PySpark needs in older versions, for pip; the Makefile reads them
 */
final case class SparkLine(
    name: String,
    version: String,
    scala: String,
    hadoop: String = "3.5.0",
    fromPyPI: Boolean = false,
    other: Option[String] = None,
    pins: String = ""
) {

  /** Such as `2.13`. */
  def scalaBinary: String = scala.split('.').take(2).mkString(".")

  /** Whether its Scala is older than that of the sources. */
  def hasOldScala: Boolean = scalaBinary == "2.12"

  /** Whether it is built for its other Scala. */
  def isOther: Boolean = other.contains(scala)

  /** Its part of the names of jars. */
  def suffix: String = s"spark$name"

  /**
   * The folders with code for this line below `src/main` or `src/test`. Their names are closed ranges of lines: `spark-4.3`,
   * `spark-4.0-4.2`. `scala-shims` adapts to differences between lines, `scala-lines` contains what only some lines have, and
   * `scala-tools` serves commands that inspect checkpoints.
   */
  def directories(base: File, tree: String): Seq[File] = for {
    kind <- Seq("scala-lines", "scala-shims", "scala-tools")
    folder <- IO.listFiles(base / "src" / tree / kind).toSeq.sortBy(_.getName)
    range = folder.getName.stripPrefix("spark-").split('-').map(SparkLine.order)
    if Ordering[(Int, Int)].gteq(order, range.head) && Ordering[(Int, Int)].lteq(order, range.last)
  } yield folder

  private def order: (Int, Int) = SparkLine.order(name)

  /** A project's target directory for this line. Lines have separate ones, so that building one does not recompile another. */
  def target(base: File): File =
    if (this == SparkLine.Default) base / "target"
    else base / "target" / (if (isOther) s"${suffix}_$scalaBinary" else suffix)

  /** The same line with the Scala of that binary version. */
  def withScala(binary: String): SparkLine = (scala +: other.toSeq).find(_.startsWith(s"$binary.")) match {
    case Some(version) => copy(scala = version)
    case None =>
      sys.error(s"spark.scala cannot be $binary: Spark $name comes with Scala ${(scala +: other.toSeq).mkString(", ")}")
  }
}

object SparkLine {
  // The Makefile and project/spark_lines.py read this table: one line for each.
  val Default: SparkLine = SparkLine("4.2", "4.2.0", "2.13.18")

  val all: Seq[SparkLine] = Seq(
    SparkLine("4.3", "4.3.0", "2.13.18", fromPyPI = true),
    Default,
    SparkLine("4.1", "4.1.1", "2.13.17", "3.4.2", pins = "pyarrow<23"),
    SparkLine("4.0", "4.0.2", "2.13.16", "3.4.1", pins = "pyarrow<23"),
    SparkLine("3.5", "3.5.8", "2.12.18", "3.3.4", other = Some("2.13.8"), pins = "pyarrow<23 pandas<2.3 numpy<2")
  )

  private def order(line: String): (Int, Int) = line.split('.') match {
    case Array(major, minor) => (major.toInt, minor.toInt)
    case _ => sys.error(s"a line of Spark cannot be $line: it must be a major and a minor version, as 4.2")
  }

  /** The line to build: `project/sbt -Dspark.line=4.3`, `-Dspark.line=3.5 -Dspark.scala=2.13`. */
  val chosen: SparkLine = {
    val name = sys.props.getOrElse("spark.line", Default.name)
    val line = all.find(_.name == name).getOrElse(
      sys.error(s"spark.line cannot be $name: there are builds for ${all.map(_.name).sorted.mkString(", ")}")
    )
    sys.props.get("spark.scala").fold(line)(line.withScala)
  }
}
