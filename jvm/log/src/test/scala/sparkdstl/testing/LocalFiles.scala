// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.io.IOException
import java.nio.file.{FileVisitResult, Files, NoSuchFileException, Path, SimpleFileVisitor}
import java.nio.file.attribute.BasicFileAttributes

import scala.collection.mutable

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

  /** Copies `from` with its content, including empty directories, to `to`, which is created, except what is deleted meanwhile. */
  def copy(from: Path, to: Path): Unit = {
    def target(path: Path) = to.resolve(from.relativize(path))
    visit(from, directory => Files.createDirectory(target(directory)): Unit) { path =>
      try if (Files.isRegularFile(path)) Files.copy(path, target(path)): Unit
      catch { case _: NoSuchFileException => () }
    }
  }

  /** Calls `enter` with each directory before its content, and `see` with each file, and with each directory after its content. */
  private def visit(directory: Path, enter: Path => Unit = _ => ())(see: Path => Unit): Unit =
    Files.walkFileTree(
      directory,
      new SimpleFileVisitor[Path] {
        override def preVisitDirectory(visited: Path, attributes: BasicFileAttributes): FileVisitResult = {
          enter(visited)
          FileVisitResult.CONTINUE
        }

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
