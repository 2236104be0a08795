// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

/** Finds packages that depend on each other, by the names in their source files. */
object PackageCycles {
  private val Declared = """(?m)^package ([\w.]+)$""".r

  /** The files below `root`, by package. */
  def sources(root: Path): Map[String, Vector[String]] = {
    val files = Files.walk(root).iterator.asScala.filter(_.toString.endsWith(".scala")).toVector
    files.map(file => new String(Files.readAllBytes(file), UTF_8)).flatMap { text =>
      Declared.findFirstMatchIn(text).map(_.group(1) -> text)
    }.groupMap(_._1)(_._2)
  }

  /** Each package that reaches itself through others, with the packages that it names. */
  def in(sources: Map[String, Vector[String]]): Map[String, Set[String]] = {
    val named = sources.map { case (of, texts) =>
      of -> texts.flatMap(code).flatMap(packagesIn(_, sources.keySet)).toSet.filter(_ != of)
    }
    def reachable(from: Set[String]): Set[String] = {
      val next = from ++ from.flatMap(named)
      if (next == from) from else reachable(next)
    }
    named.filter { case (of, others) => reachable(others)(of) }
  }

  /** Lines without comments. */
  private def code(text: String): Array[String] =
    text.replaceAll("(?s)/\\*.*?\\*/", "").split('\n').map(_.takeWhile(_ != '"').replaceAll("//.*", ""))
      .filterNot(_.startsWith("package "))

  /** The longest known package of each qualified name. */
  private def packagesIn(line: String, known: Set[String]): Iterator[String] =
    """\w+(?:\.\w+)+""".r.findAllIn(line).flatMap { name =>
      val parts = name.split('.')
      (parts.length to 1 by -1).iterator.map(parts.take(_).mkString(".")).find(known)
    }
}
