package sparkdstl.testing

import java.io.File
import java.nio.file.{Files, Path}
import java.util.Comparator

/** A directory of a test's own, gone after it. */
object TemporaryDirectory {
  def within[T](test: File => T): T = {
    val directory = Files.createTempDirectory("dstl-test")
    try test(directory.toFile)
    finally delete(directory)
  }

  /** Names of all files in `directory` and below, hidden ones too, relative to it. */
  def filesIn(directory: File): Set[String] = {
    val paths = Files.walk(directory.toPath)
    try {
      val files = paths.filter(Files.isRegularFile(_)).toArray.map(_.asInstanceOf[Path])
      files.map(directory.toPath.relativize(_).toString).toSet
    } finally paths.close()
  }

  private def delete(directory: Path): Unit = {
    val paths = Files.walk(directory)
    try paths.sorted(Comparator.reverseOrder[Path]()).forEach(path => Files.delete(path))
    finally paths.close()
  }
}
