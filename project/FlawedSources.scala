// SPDX-License-Identifier: Apache-2.0
import java.nio.charset.StandardCharsets.UTF_8

import sbt._

/**
 * A copy of the log's sources in which each flaw of a list stands beside the line that it replaces, behind a switch.
 *
 * A list is a text file. A line that ends in `.scala` names the file, below the root of the log's packages, for the flaws that
 * follow. A flaw takes three lines: its name and description; the source line without indentation, with the
 * expression to replace between « and »; and the expression that replaces it.
 * {{{
 * coordinator/Barrier.scala
 *
 * barrier-waits-for-nothing: the entry is written before the changes are durable
 * - val settled = «ledger.whenSettled»
 * + Future.unit
 * }}}
 */
object FlawedSources {
  final case class Flaw(list: String, file: String, name: String, sentence: String, line: String, flawed: String) {
    private val (from, to) = (line.indexOf('«'), line.indexOf('»'))
    if (from < 0 || to < from) sys.error(s"$list: $name marks no expression with « and »")

    val original: String = line.replace("«", "").replace("»", "")
    val start: Int = from
    val expression: String = line.substring(from + 1, to)
    val end: Int = start + expression.length

    /** Whether the flawed expression is a constant or selects a value, so that evaluating it beside the other one changes nothing. */
    def isPure: Boolean = flawed.matches(Constant) || flawed.matches(Selection)
  }

  private val Switch = "sparkdstl.sim.Flaw"
  private val Constant = """true|false|None|Nil|\d+L?|(Set|Map|Vector)\.empty(\[[\w, ]+\])?"""
  private val Selection = """[a-zA-Z][\w.]*( (<|<=|>|>=|==|!=|\|\||&&|\+) [a-zA-Z][\w.]*)*"""
  private val Named = """([a-z0-9-]+): (.+)""".r

  def read(lists: Seq[File]): Vector[Flaw] = {
    val flaws = lists.sortBy(_.getName).toVector.flatMap(readList)
    val twice = flaws.groupBy(_.name).collect { case (name, of) if of.size > 1 => name }
    if (twice.nonEmpty) sys.error(s"flaws that are listed twice: ${twice.mkString(", ")}")
    flaws
  }

  private def readList(list: File): Vector[Flaw] = {
    val lines = IO.readLines(list, UTF_8).map(_.trim).filterNot(line => line.isEmpty || line.startsWith("#")).toVector
    val (_, _, flaws) = lines.foldLeft(("", Vector.empty[String], Vector.empty[Flaw])) {
      case ((_, Vector(), flaws), line) if line.endsWith(".scala") => (line, Vector.empty, flaws)
      case ((file, Vector(head, original), flaws), line) if line.startsWith("+ ") =>
        head match {
          case Named(name, sentence) =>
            (file, Vector.empty, flaws :+ Flaw(list.base, file, name, sentence, original, line.drop(2)))
          case _ => sys.error(s"$list: not a name and a sentence: $head")
        }
      case ((file, Vector(head), flaws), line) if line.startsWith("- ") => (file, Vector(head, line.drop(2)), flaws)
      case ((file, Vector(), flaws), line) => (file, Vector(line), flaws)
      case (_, line) => sys.error(s"$list: unexpected line: $line")
    }
    flaws
  }

  /** Writes the copies and the table of flaws below `directory`. The table says of each flaw whether its line is in its file, once. */
  def write(flaws: Vector[Flaw], sources: Seq[File], root: File, directory: File): Seq[File] = {
    val numbers = flaws.zipWithIndex.toMap
    val byFile = flaws.groupBy(_.file)
    val copies = sources.map { source =>
      val text = IO.read(source, UTF_8)
      val lines = text.split("\n", -1).map(_.trim)
      val there = source.relativeTo(root).flatMap(of => byFile.get(of.getPath)).getOrElse(Vector.empty)
        .filter(flaw => lines.count(_ == flaw.original) == 1)
      write(directory / source.getPath.stripPrefix("/"), flawed(text, there, numbers)) -> there
    }
    val all = copies.map(_._1) :+ write(directory / "FlawTable.scala", table(flaws, copies.flatMap(_._2).toSet))
    val expected = all.toSet
    (directory ** "*.scala").get.filterNot(expected).foreach(IO.delete(_))
    all
  }

  private def flawed(text: String, flaws: Vector[Flaw], numbers: Map[Flaw, Int]): String = {
    val lines = text.split("\n", -1)
    val byLine = flaws.groupBy(_.original)
    lines.map(line => byLine.get(line.trim).fold(line)(switched(line, _, numbers))).mkString("\n")
  }

  private def switched(line: String, flaws: Vector[Flaw], numbers: Map[Flaw, Int]): String = {
    val indent = line.indexWhere(_ != ' ')
    val byPlace = flaws.groupBy(flaw => (flaw.start, flaw.end)).toVector.sortBy(-_._1._1)
    byPlace.sliding(2).foreach {
      case Vector((later, of), (earlier, _)) if earlier._2 > later._1 => sys.error(s"flaws overlap: ${of.head.name}")
      case _ =>
    }
    byPlace.foldLeft(line) { case (text, ((start, end), of)) =>
      val choices = of.map { flaw =>
        val question = if (flaw.isPure) "isOn" else "is"
        s"if ($Switch.$question(${numbers(flaw)})) { ${flaw.flawed} } else "
      }.mkString
      val expression = of.filter(_.isPure).foldLeft(s"{ ${text.substring(indent + start, indent + end)} }") {
        (inner, flaw) => s"$Switch.compared(${numbers(flaw)}, $inner)(${flaw.flawed})"
      }
      s"${text.take(indent + start)}($choices$expression)${text.drop(indent + end)}"
    }
  }

  private def table(flaws: Vector[Flaw], there: Set[Flaw]): String = {
    def quoted(text: String) = "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\""
    val rows = flaws.map { flaw =>
      val missing = if (there(flaw)) "None" else s"Some(${quoted(s"${flaw.file}: ${flaw.original}")})"
      s"    Flaw(${Seq(flaw.list, flaw.name, flaw.sentence).map(quoted).mkString(", ")}, $missing)"
    }
    s"package sparkdstl.sim\n\nobject FlawTable {\n  val flaws: Vector[Flaw] = Vector(\n${rows.mkString(",\n")}\n  )\n}\n"
  }

  private def write(file: File, text: String): File = {
    if (!file.exists || IO.read(file, UTF_8) != text) IO.write(file, text, UTF_8)
    file
  }
}
