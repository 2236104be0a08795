// SPDX-License-Identifier: Apache-2.0
import java.nio.charset.StandardCharsets.UTF_8

import sbt._

/**
 * The sources are written in Scala 2.13. For Scala 2.12 each file gets an import of what that version's library lacks, in the line
 * of its package clause, so that line numbers in errors stay the same.
 */
object OldScala {
  private val Imports = "; import scala.collection.compat._; import sparkdstl.compat._"
  private val Package = """(?m)^package [a-zA-Z0-9_.]+$""".r

  // In Scala 2.12 the result is lazy for an iterator, and changes with a buffer.
  private val Refused = """\.to(Seq|IndexedSeq)\b""".r

  /**
   * Copies the Scala files below `directory` with the import, and other files unchanged. Fails if a file has code that compiles with
   * Scala 2.12 and means something else.
   *
   * @param isShipped whether to check for such code
   */
  def withImports(sources: Seq[File], directory: File, isShipped: Boolean): Seq[File] = {
    val (written, others) = sources.distinct.partition(isWrittenForNewer)
    val copies = written.map { source =>
      val original = IO.read(source, UTF_8)
      if (isShipped && Refused.findFirstIn(original).nonEmpty)
        sys.error(s"$source says toSeq or toIndexedSeq, which are lazy or shared in Scala 2.12: say toVector")
      val copy = directory / source.getPath.stripPrefix("/")
      val text = Package.replaceFirstIn(original, "$0" + Imports)
      if (!copy.exists || IO.read(copy, UTF_8) != text) IO.write(copy, text, UTF_8)
      copy
    }
    val expected = copies.toSet
    (directory ** "*.scala").get.filterNot(expected).foreach(IO.delete(_))
    copies ++ others
  }

  private def isWrittenForNewer(source: File): Boolean =
    source.getName.endsWith(".scala") && !source.getPath.contains("/src/main/scala-2.12/")
}
