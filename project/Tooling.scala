// SPDX-License-Identifier: Apache-2.0
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, StandardCopyOption}

import sbt._
import sbt.Keys._

/** The tasks of the Makefile's targets: one for each target, so that a target starts sbt once. */
object Tooling {
  val jar = taskKey[File]("Builds the users' jar, puts it into target/ and a copy into the Python package")
  val testJar = taskKey[File]("Packs the test classes of both modules, for end-to-end tests, into target/")
  val benchJar = taskKey[File]("Packs the benchmark into target/")
  val checkCoordinates =
    taskKey[Unit]("Fails if the Python package or the docs name the artifact for Maven or the repository otherwise")
  val verify = taskKey[Unit]("Runs every check there is, to the end, and writes what failed to target/verify.txt")

  private val Released = """## \[([0-9.]+)\] - [0-9-]+""".r

  /** The releases that a version has to be compatible with: those of its series to which the changelog gives a date. */
  def earlierReleases(changelog: File, version: String): Set[String] = {
    // Before 1.0.0 a minor release may change the public API.
    def series(of: String) = of.split('.').take(if (of.startsWith("0.")) 2 else 1).toSeq
    IO.readLines(changelog, UTF_8).collect {
      case Released(of) if of != version && series(of) == series(version) => of
    }.toSet
  }

  /** Copies `built` to each of `copies` atomically: a reader gets the old jar or the new one. */
  def publishJar(built: File, copies: File*): File = {
    copies.foreach { copy =>
      val temporary = copy.getParentFile / s"${copy.getName}.tmp"
      IO.copyFile(built, temporary)
      Files.move(temporary.toPath, copy.toPath, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    }
    copies.head
  }

  /** Writes one line per check, `<name> ok` or `<name> failed`, then fails if one of them did. */
  def report(file: File, logger: Logger, outcomes: Seq[(String, Result[_])]): Unit = {
    val failed = outcomes.collect { case (name, Inc(cause)) => name -> cause }
    failed.foreach { case (name, cause) =>
      val reasons = Incomplete.allExceptions(cause).map(_.toString).toSeq.distinct
      logger.error(s"$name: ${if (reasons.isEmpty) "failed" else reasons.mkString("; ")}")
    }
    val names = failed.map(_._1).toSet
    val lines = outcomes.map { case (name, _) => s"$name ${if (names(name)) "failed" else "ok"}" }
    IO.write(file, lines.mkString("", "\n", "\n"), UTF_8)
    if (failed.nonEmpty) throw new MessageOnlyException(s"failed: ${failed.map(_._1).mkString(", ")}")
  }
}
