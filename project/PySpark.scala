// SPDX-License-Identifier: Apache-2.0
import scala.sys.process._

import sbt._
import sbt.Keys._

/** Spark's jars from the package `pyspark`, for versions that Maven Central lacks. */
object PySpark {

  /** The jars of a release, fetched at the first use. */
  def jars(version: String, log: Logger): Classpath = {
    val python = sys.env.getOrElse("PYTHON", "python3")
    val directory = Process(Seq(python, "project/spark_jars.py", version)).!!(ProcessLogger(_ => (), log.info(_))).trim
    (file(directory) * "*.jar").classpath
  }
}
