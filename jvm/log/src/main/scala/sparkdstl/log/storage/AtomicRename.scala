package sparkdstl.log.storage

import java.io.{File, FileNotFoundException, IOException}
import java.nio.file.{FileSystemException, Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Path, UnsupportedFileSystemException}
import org.apache.hadoop.fs.Options.Rename

/** Renames a finished temporary file to its object's path, within one directory. */
private[storage] trait AtomicRename {

  /** Whether there is always either the old or the new object while one replaces the other. */
  def replacesAtomically: Boolean

  /** Renames if nothing is at `to`, else fails with Hadoop's `FileAlreadyExistsException`. */
  def create(from: Path, to: Path): Unit

  /** Renames, replacing what is at `to`: in two steps, between which there is no object, unless overridden. */
  def replace(from: Path, to: Path): Unit =
    try create(from, to)
    catch {
      case _: org.apache.hadoop.fs.FileAlreadyExistsException =>
        delete(to)
        create(from, to)
    }

  protected def delete(path: Path): Unit
}

private[storage] object AtomicRename {

  /** The best that the file system of `base` offers. */
  def of(fileSystem: FileSystem, base: Path, configuration: Configuration): AtomicRename =
    if (fileSystem.getUri.getScheme == "file") LocalRename
    else
      try {
        val context = FileContext.getFileContext(fileSystem.makeQualified(base).toUri, configuration)
        // Elsewhere Hadoop replaces by deleting the target before it renames.
        new FileContextRename(context, Set("hdfs", "viewfs").contains(fileSystem.getUri.getScheme))
      } catch { case _: UnsupportedFileSystemException => new FileSystemRename(fileSystem) }
}

/** Local files. Hadoop's local rename checks first and acts later; of several hard links to one name only one succeeds. */
private[storage] object LocalRename extends AtomicRename {
  override def replacesAtomically: Boolean = true

  override def replace(from: Path, to: Path): Unit =
    Files.move(local(from), local(to), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING): Unit

  override def create(from: Path, to: Path): Unit =
    try {
      try Files.createLink(local(to), local(from)): Unit
      catch {
        case e: java.nio.file.FileAlreadyExistsException => throw e
        // Without hard links a copy is still exclusive, but an early reader sees a part.
        case _: UnsupportedOperationException | _: FileSystemException => Files.copy(local(from), local(to)): Unit
      }
      delete(from)
    } catch { case e: java.nio.file.FileAlreadyExistsException => throw StorageErrors.alreadyExists(to, e) }

  override protected def delete(path: Path): Unit = Files.delete(local(path))

  private def local(path: Path): java.nio.file.Path = new File(path.toUri.getPath).toPath
}

/**
 * Any file system with an `AbstractFileSystem`, such as HDFS and ABFS: the server decides what is renamed and refused.
 *
 * @param replacesAtomically whether the server also replaces in one step
 */
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

  /** A missing source is no answer: the client below may have repeated the request. */
  private def renaming(from: Path, to: Path)(rename: => Unit): Unit =
    try rename
    catch { case e: FileNotFoundException => throw new IOException(s"cannot rename $from to $to", e) }

  /** Our file is still there, so the object at `to` is another writer's. */
  private def isTaken(from: Path, to: Path, error: IOException): Boolean =
    try context.util().exists(to) && context.util().exists(from)
    catch {
      case e: IOException =>
        error.addSuppressed(e)
        false
    }
}

/**
 * Everything else. A create is exclusive only if the file system's own `rename` refuses an existing target; and there is a
 * moment without an object during a replacement.
 */
private[storage] final class FileSystemRename(fileSystem: FileSystem) extends AtomicRename {
  override def replacesAtomically: Boolean = false

  override def create(from: Path, to: Path): Unit = {
    if (fileSystem.exists(to)) throw StorageErrors.alreadyExists(to, null)
    if (!fileSystem.rename(from, to))
      throw if (fileSystem.exists(to) && fileSystem.exists(from)) StorageErrors.alreadyExists(to, null)
      else new IOException(s"cannot rename $from to $to")
  }

  override protected def delete(path: Path): Unit = fileSystem.delete(path, false): Unit
}
