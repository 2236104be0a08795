import scala.sys.process._

import sbt._
import sbt.Keys._

/** Spark's jars out of the package `pyspark`, where Maven Central has none. */
object PySpark {

  /** The jars of that release, which are fetched if they were not before. */
  def jars(version: String, log: Logger): Classpath = {
    val python = sys.env.getOrElse("PYTHON", "python3")
    val directory = Process(Seq(python, "project/spark_jars.py", version)).!!(ProcessLogger(_ => (), log.info(_))).trim
    (file(directory) * "*.jar").classpath
  }
}
