// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{File, FileNotFoundException, IOException}
import java.nio.file.{FileSystemException, Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Path, UnsupportedFileSystemException}
import org.apache.hadoop.fs.Options.Rename

/** Renames a finished temporary file to its object's path, within one directory. */
private[storage] trait AtomicRename {

  /** Whether a replacement always leaves either the old or the new object. */
  def replacesAtomically: Boolean

  /** Renames if `to` does not exist, else fails with Hadoop's `FileAlreadyExistsException`. */
  def create(from: Path, to: Path): Unit

  /** Renames and replaces `to`. By default in two steps, between which there is no object. */
  def replace(from: Path, to: Path): Unit =
    try create(from, to)
    catch {
      case _: org.apache.hadoop.fs.FileAlreadyExistsException =>
        delete(to)
        create(from, to)
    }

  protected def delete(path: Path): Unit

  /** Renames. A missing source does not show that the rename failed: the client below may have retried it. */
  protected def renaming[T](from: Path, to: Path)(rename: => T): T =
    try rename
    catch { case e: FileNotFoundException => throw new IOException(s"cannot rename $from to $to", e) }
}

private[storage] object AtomicRename {

  /** The best rename of the file system of `base`. */
  def of(fileSystem: FileSystem, base: Path, configuration: Configuration): AtomicRename =
    if (fileSystem.getUri.getScheme == "file") LocalRename
    else
      try {
        val context = FileContext.getFileContext(fileSystem.makeQualified(base).toUri, configuration)
        // Other file systems replace by deleting the target before the rename.
        new FileContextRename(context, Set("hdfs", "viewfs").contains(fileSystem.getUri.getScheme))
      } catch { case _: UnsupportedFileSystemException => new FileSystemRename(fileSystem) }
}

/**
 * Renames local files with hard links, of which only one to a name succeeds. Hadoop's local rename is not atomic. Where stock
 * Spark has written a file of that name, Hadoop keeps its checksum beside it, and would refuse the new content.
 */
private[storage] object LocalRename extends AtomicRename {
  override def replacesAtomically: Boolean = true

  override def replace(from: Path, to: Path): Unit = {
    forgetChecksum(to)
    Files.move(local(from), local(to), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING): Unit
  }

  override def create(from: Path, to: Path): Unit =
    try {
      if (!Files.exists(local(to))) forgetChecksum(to)
      try Files.createLink(local(to), local(from)): Unit
      catch {
        case e: java.nio.file.FileAlreadyExistsException => throw e
        // Without hard links, a copy is also exclusive, but readers may see a part of it.
        case _: UnsupportedOperationException | _: FileSystemException => Files.copy(local(from), local(to)): Unit
      }
      delete(from)
    } catch { case e: java.nio.file.FileAlreadyExistsException => throw StorageErrors.alreadyExists(to, e) }

  override protected def delete(path: Path): Unit = Files.delete(local(path))

  private def forgetChecksum(of: Path): Unit =
    Files.deleteIfExists(local(of).resolveSibling(s".${of.getName}.crc")): Unit

  private def local(path: Path): java.nio.file.Path = new File(path.toUri.getPath).toPath
}

/** Renames with an `AbstractFileSystem`, such as that of HDFS or ABFS, whose servers rename atomically. */
private[storage] final class FileContextRename(context: FileContext, override val replacesAtomically: Boolean)
    extends AtomicRename {

  override def replace(from: Path, to: Path): Unit =
    if (replacesAtomically) renaming(from, to)(context.rename(from, to, Rename.OVERWRITE)) else super.replace(from, to)

  override def create(from: Path, to: Path): Unit =
    try renaming(from, to)(context.rename(from, to, Rename.NONE))
    catch {
      case e: IOException if StorageErrors.meansAlreadyExists(e) || isTaken(from, to, e) =>
        throw StorageErrors.alreadyExists(to, e)
    }

  override protected def delete(path: Path): Unit = context.delete(path, false): Unit

  /** Whether another writer has created `to`: `from` still exists. */
  private def isTaken(from: Path, to: Path, error: IOException): Boolean =
    try context.util().exists(to) && context.util().exists(from)
    catch {
      case e: IOException =>
        error.addSuppressed(e)
        false
    }
}

/**
 * Renames on all other file systems. A create is exclusive only if the file system's `rename` refuses an existing target.
 * During a replacement there is a moment without an object.
 */
private[storage] final class FileSystemRename(fileSystem: FileSystem) extends AtomicRename {
  override def replacesAtomically: Boolean = false

  override def create(from: Path, to: Path): Unit = {
    if (fileSystem.exists(to)) throw StorageErrors.alreadyExists(to, null)
    if (!renaming(from, to)(fileSystem.rename(from, to)))
      throw if (fileSystem.exists(to) && fileSystem.exists(from)) StorageErrors.alreadyExists(to, null)
      else new IOException(s"cannot rename $from to $to")
  }

  override protected def delete(path: Path): Unit = fileSystem.delete(path, false): Unit
}
