import java.nio.charset.StandardCharsets.UTF_8

import sbt._

/**
 * The sources are written in Scala 2.13. For Scala 2.12 each file gets one import more, of what that version's library lacks, in
 * the line of its package clause: so the lines of errors are those of the file.
 */
object OldScala {
  private val Imports = "; import scala.collection.compat._; import sparkdstl.compat._"
  private val Package = """(?m)^package [a-zA-Z0-9_.]+$""".r

  // There it is lazy if it is asked of an iterator, and still changes if it is asked of a buffer.
  private val Refused = """\.to(Seq|IndexedSeq)\b""".r

  /**
   * Copies of the Scala files below `directory`, and whatever else there is as it is. Fails if one of them has what compiles with Scala
   * 2.12 and means something else.
   *
   * @param isShipped whether that is looked for
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
