// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.InputStream
import java.nio.file.{Files, Path}

import scala.collection.mutable

/**
 * Links to local files. A link keeps the content when the file is deleted, and takes no space while the file exists. Calls
 * throw an `IOException` or an `UnsupportedOperationException`.
 */
trait LinkedFiles {

  /** A link to `file`; `near` is a permanent directory on the same disk. */
  def link(file: Path, near: Path): Path

  def length(file: Path): Long

  /** Closed by the caller. */
  def open(file: Path): InputStream

  /** The file need not exist. */
  def delete(file: Path): Unit
}

/** Hard links, in directories near the files; `makeDirectory` makes one that is deleted at the end of the process. */
final class HardLinks(makeDirectory: Path => Path) extends LinkedFiles {

  // Guarded by this.
  private val directories = mutable.HashMap.empty[Path, Path]
  private var linked = 0L

  override def link(file: Path, near: Path): Path = synchronized {
    val directory = directories.getOrElseUpdate(near, makeDirectory(near))
    linked += 1
    Files.createLink(directory.resolve(s"$linked"), file)
  }

  override def length(file: Path): Long = Files.size(file)
  override def open(file: Path): InputStream = Files.newInputStream(file)
  override def delete(file: Path): Unit = Files.deleteIfExists(file): Unit
}
