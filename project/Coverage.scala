// SPDX-License-Identifier: Apache-2.0
import scala.collection.JavaConverters._

import org.jacoco.core.analysis.{Analyzer, CoverageBuilder}
import org.jacoco.core.tools.ExecFileLoader
import sbt._
import sbt.Keys._

/** Measures with `project/sbt -Dcoverage=true` how much of a module its tests run. JaCoCo instruments classes as a JVM loads them. */
object Coverage {
  val coverage = taskKey[Unit]("Runs the tests of this module, and prints how many of its lines ran")

  private val Agent = config("jacoco").hide
  private val data = Def.setting(target.value / "jacoco.exec")

  val settings: Seq[Def.Setting[_]] =
    if (!sys.props.contains("coverage")) Nil
    else
      Seq(
        ivyConfigurations += Agent,
        libraryDependencies += ("org.jacoco" % "org.jacoco.agent" % "0.8.15" % Agent).classifier("runtime"),
        Test / javaOptions += {
          val agent = update.value.select(configurationFilter(Agent.name)).head
          s"-javaagent:$agent=append=false,destfile=${data.value}"
        },
        coverage := {
          (Test / test).value
          report(data.value, (Compile / classDirectory).value, streams.value.log)
        }
      )

  /** Prints a line for each package, and one for all. Most branches are in methods that Scala generates, so they are not counted. */
  private def report(data: File, classes: File, logger: Logger): Unit = {
    val loader = new ExecFileLoader
    loader.load(data)
    val builder = new CoverageBuilder
    new Analyzer(loader.getExecutionDataStore, builder).analyzeAll(classes)
    val all = builder.getBundle("all packages")
    (all.getPackages.asScala.toSeq.sortBy(_.getName) :+ all).foreach { of =>
      val lines = of.getLineCounter
      logger.info(f"${of.getName}%-36s ${lines.getCoveredRatio * 100}%5.1f%% of ${lines.getTotalCount}%,6d lines")
    }
  }
}
