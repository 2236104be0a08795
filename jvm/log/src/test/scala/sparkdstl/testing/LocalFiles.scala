// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.io.IOException
import java.nio.file.{FileVisitResult, Files, NoSuchFileException, Path, SimpleFileVisitor}
import java.nio.file.attribute.BasicFileAttributes

import scala.collection.mutable
import scala.jdk.CollectionConverters._

/** Recursive operations on local directories. */
object LocalFiles {

  /**
   * The sorted paths of all files below `directory`, including hidden ones, relative to it; empty if it does not exist.
   * A file that is deleted meanwhile may be listed or not.
   */
  def below(directory: Path): Seq[String] = {
    val found = mutable.ArrayBuffer.empty[String]
    visit(directory)(path => if (Files.isRegularFile(path)) found += directory.relativize(path).toString: Unit)
    found.sorted.toVector
  }

  /** Deletes `directory` with its content. */
  def delete(directory: Path): Unit = visit(directory)(path => Files.deleteIfExists(path): Unit)

  /** Copies `from` with its content, including empty directories, to `to`, which is created. */
  def copy(from: Path, to: Path): Unit = {
    val all = Files.walk(from)
    try all.iterator.asScala.foreach(path => Files.copy(path, to.resolve(from.relativize(path))))
    finally all.close()
  }

  /** Calls `see` with each file, and with each directory after its content. */
  private def visit(directory: Path)(see: Path => Unit): Unit =
    Files.walkFileTree(
      directory,
      new SimpleFileVisitor[Path] {
        override def visitFile(file: Path, attributes: BasicFileAttributes): FileVisitResult = {
          see(file)
          FileVisitResult.CONTINUE
        }

        override def visitFileFailed(file: Path, error: IOException): FileVisitResult = unlessGone(Some(error))

        override def postVisitDirectory(visited: Path, error: IOException): FileVisitResult = {
          see(visited)
          unlessGone(Option(error))
        }
      }
    ): Unit

  private def unlessGone(error: Option[IOException]): FileVisitResult = error match {
    case None | Some(_: NoSuchFileException) => FileVisitResult.CONTINUE
    case Some(other) => throw other
  }
}
