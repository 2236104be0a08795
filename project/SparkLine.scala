import sbt._

/**
 * A minor release of Spark that there is a build for, and what that is compiled against.
 *
 * @param name     such as `4.2`
 * @param version  the patch release that is compiled against
 * @param scala    what that Spark comes with
 * @param folders  what differs between lines: for `4.3` that is `jvm/spark/src/main/scala-spark-4.3`, and the same in
 *                 `src/test`. Lines may share folders
 * @param hadoop   the version of Hadoop's client that comes with that Spark
 * @param fromPyPI whether its jars are taken from the package `pyspark`, because Maven Central has none
 * @param other    a Scala that there are distributions of that Spark with besides
 */
final case class SparkLine(
    name: String,
    version: String,
    scala: String,
    folders: Seq[String],
    hadoop: String = "3.5.0",
    fromPyPI: Boolean = false,
    other: Option[String] = None
) {

  /** Such as `2.13`. */
  def scalaBinary: String = scala.split('.').take(2).mkString(".")

  /** Whether its Scala is older than what the sources are written in. */
  def hasOldScala: Boolean = scalaBinary == "2.12"

  /** Whether it is built for the Scala that it does not come with first. */
  def isOther: Boolean = other.contains(scala)

  /** As it is part of the names of jars. */
  def suffix: String = s"spark$name"

  def directories(base: File, tree: String): Seq[File] =
    folders.map(folder => base / "src" / tree / s"scala-spark-$folder")

  /** Where a project builds for this line: apart, so that another line neither recompiles it nor mixes with it. */
  def target(base: File): File =
    if (this == SparkLine.Default) base / "target"
    else base / "target" / (if (isOther) s"${suffix}_$scalaBinary" else suffix)

  /** The same with the Scala of that binary version. */
  def withScala(binary: String): SparkLine = (scala +: other.toSeq).find(_.startsWith(s"$binary.")) match {
    case Some(version) => copy(scala = version)
    case None =>
      sys.error(s"spark.scala cannot be $binary: Spark $name comes with Scala ${(scala +: other.toSeq).mkString(", ")}")
  }
}

object SparkLine {
  // Folders of all lines from one on.
  private val since40 = Seq("since-4.0")
  private val since41 = "since-4.1" +: since40
  private val since42 = "since-4.2" +: since41

  // Each in one line, in which the Makefile looks for it.
  val Default: SparkLine = SparkLine("4.2", "4.2.0", "2.13.18", Seq("before-4.3", "4.1-and-4.2") ++ since42)

  val all: Seq[SparkLine] = Seq(
    SparkLine("4.3", "4.3.0", "2.13.18", "4.3" +: since42, fromPyPI = true),
    Default,
    SparkLine("4.1", "4.1.1", "2.13.17", Seq("before-4.3", "4.1-and-4.2", "before-4.2", "4.1") ++ since41, "3.4.2"),
    SparkLine("4.0", "4.0.2", "2.13.16", Seq("before-4.3", "before-4.2", "before-4.1", "4.0") ++ since40, "3.4.1"),
    SparkLine("3.5", "3.5.8", "2.12.18", Seq("before-4.1", "3.5"), "3.3.4", other = Some("2.13.8"))
  )

  /** The one that is built: `project/sbt -Dspark.line=4.3`, `-Dspark.line=3.5 -Dspark.scala=2.13`. */
  val chosen: SparkLine = {
    val name = sys.props.getOrElse("spark.line", Default.name)
    val line = all.find(_.name == name).getOrElse(
      sys.error(s"spark.line cannot be $name: there are builds for ${all.map(_.name).sorted.mkString(", ")}")
    )
    sys.props.get("spark.scala").fold(line)(line.withScala)
  }
}
