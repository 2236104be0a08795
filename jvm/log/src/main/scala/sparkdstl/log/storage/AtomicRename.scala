package sparkdstl.log.storage

import java.io.{File, IOException}
import java.nio.file.{FileSystemException, Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Path, UnsupportedFileSystemException}
import org.apache.hadoop.fs.Options.Rename

/** Renames a finished temporary file to its object's path, within one directory. */
private[storage] trait AtomicRename {

  /** Renames, replacing what is at `to`. */
  def replace(from: Path, to: Path): Unit

  /** Renames if nothing is at `to`, else fails with Hadoop's `FileAlreadyExistsException`. */
  def create(from: Path, to: Path): Unit
}

private[storage] object AtomicRename {

  /** The best that the file system of `base` offers. */
  def of(fileSystem: FileSystem, base: Path, configuration: Configuration): AtomicRename =
    if (fileSystem.getUri.getScheme == "file") LocalRename
    else
      try new FileContextRename(FileContext.getFileContext(fileSystem.makeQualified(base).toUri, configuration))
      catch { case _: UnsupportedFileSystemException => new FileSystemRename(fileSystem) }
}

/** Local files. Hadoop's local rename looks first and acts later; a hard link is made by one of several only. */
private[storage] object LocalRename extends AtomicRename {

  override def replace(from: Path, to: Path): Unit = {
    val _ = Files.move(local(from), local(to), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
  }

  override def create(from: Path, to: Path): Unit =
    try {
      link(from, to)
      Files.delete(local(from))
    } catch {
      case e: java.nio.file.FileAlreadyExistsException => throw StorageErrors.alreadyExists(to, e)
    }

  private def link(from: Path, to: Path): Unit =
    try {
      val _ = Files.createLink(local(to), local(from))
    } catch {
      case e: java.nio.file.FileAlreadyExistsException => throw e
      case _: UnsupportedOperationException | _: FileSystemException => copyWhereLinksAreUnknown(from, to)
    }

  /** For file systems without hard links. Still exclusive, but a reader that comes early sees a part. */
  private def copyWhereLinksAreUnknown(from: Path, to: Path): Unit = {
    val _ = Files.copy(local(from), local(to))
  }

  private def local(path: Path): java.nio.file.Path = new File(path.toUri.getPath).toPath
}

/**
 * Any file system with an `AbstractFileSystem`, such as HDFS and ABFS: what is renamed and what is refused is decided
 * by the server.
 */
private[storage] final class FileContextRename(context: FileContext) extends AtomicRename {

  override def replace(from: Path, to: Path): Unit = context.rename(from, to, Rename.OVERWRITE)

  override def create(from: Path, to: Path): Unit =
    try context.rename(from, to, Rename.NONE)
    catch {
      case e: IOException if StorageErrors.meansAlreadyExists(e) || isTaken(from, to) =>
        throw StorageErrors.alreadyExists(to, e)
    }

  /** Our file still being where it was, what is at `to` is another's. */
  private def isTaken(from: Path, to: Path): Boolean = context.util().exists(to) && context.util().exists(from)
}

/**
 * Everything else. Whether an exclusive create is exclusive depends on the file system's own `rename`, which should
 * refuse a target that exists; and a replaced object is gone for a moment.
 */
private[storage] final class FileSystemRename(fileSystem: FileSystem) extends AtomicRename {

  override def replace(from: Path, to: Path): Unit =
    if (!fileSystem.rename(from, to)) {
      val _ = fileSystem.delete(to, false)
      if (!fileSystem.rename(from, to)) throw new IOException(s"cannot rename $from to $to")
    }

  override def create(from: Path, to: Path): Unit = {
    if (fileSystem.exists(to)) throw StorageErrors.alreadyExists(to, null)
    if (!fileSystem.rename(from, to))
      throw if (fileSystem.exists(to) && fileSystem.exists(from)) StorageErrors.alreadyExists(to, null)
      else new IOException(s"cannot rename $from to $to")
  }
}
