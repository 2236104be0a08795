package sparkdstl.testing

import java.io.File
import java.nio.file.Files

/** A directory of a test's own, gone after it. */
object TemporaryDirectory {
  def within[T](test: File => T): T = {
    val directory = Files.createTempDirectory("dstl-test")
    try test(directory.toFile)
    finally LocalFiles.delete(directory)
  }

  /** Names of all files in `directory` and below, hidden ones too, relative to it. */
  def filesIn(directory: File): Set[String] = LocalFiles.below(directory.toPath).toSet
}
