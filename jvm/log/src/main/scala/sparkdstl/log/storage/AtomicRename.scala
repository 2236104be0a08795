package sparkdstl.log.storage

import java.io.{File, FileNotFoundException, IOException}
import java.nio.file.{FileSystemException, Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Path, UnsupportedFileSystemException}
import org.apache.hadoop.fs.Options.Rename

/** Renames a finished temporary file to its object's path, within one directory. */
private[storage] trait AtomicRename {

  /** Renames, replacing what is at `to`. */
  def replace(from: Path, to: Path): Unit

  /** Whether there is always either the old or the new object while one replaces the other. */
  def replacesAtomically: Boolean

  /** Renames if nothing is at `to`, else fails with Hadoop's `FileAlreadyExistsException`. */
  def create(from: Path, to: Path): Unit
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

/** Local files. Hadoop's local rename looks first and acts later; a hard link is made by one of several only. */
private[storage] object LocalRename extends AtomicRename {

  override def replacesAtomically: Boolean = true

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

/** Replaces in two steps where storage cannot do it in one: between them there is no object. */
private[storage] trait ReplaceInSteps extends AtomicRename {

  protected def delete(path: Path): Unit

  protected def replaceInSteps(from: Path, to: Path): Unit =
    try create(from, to)
    catch {
      case _: org.apache.hadoop.fs.FileAlreadyExistsException =>
        delete(to)
        create(from, to)
    }
}

/**
 * Any file system with an `AbstractFileSystem`, such as HDFS and ABFS: what is renamed and what is refused is decided
 * by the server.
 *
 * @param replacesAtomically
 *   whether the server also replaces in one step
 */
private[storage] final class FileContextRename(context: FileContext, override val replacesAtomically: Boolean)
    extends ReplaceInSteps {

  override def replace(from: Path, to: Path): Unit =
    if (replacesAtomically) renaming(from, to)(context.rename(from, to, Rename.OVERWRITE)) else replaceInSteps(from, to)

  override def create(from: Path, to: Path): Unit =
    try renaming(from, to)(context.rename(from, to, Rename.NONE))
    catch {
      case e: IOException if StorageErrors.meansAlreadyExists(e) || isTaken(from, to, e) =>
        throw StorageErrors.alreadyExists(to, e)
    }

  override protected def delete(path: Path): Unit = {
    val _ = context.delete(path, false)
  }

  /** That the source is missing may come of a request which the client below has repeated: it is no answer. */
  private def renaming(from: Path, to: Path)(rename: => Unit): Unit =
    try rename
    catch { case e: FileNotFoundException => throw new IOException(s"cannot rename $from to $to", e) }

  /** Our file still being where it was, what is at `to` is another's. */
  private def isTaken(from: Path, to: Path, error: IOException): Boolean =
    try context.util().exists(to) && context.util().exists(from)
    catch {
      case e: IOException =>
        error.addSuppressed(e)
        false
    }
}

/**
 * Everything else. Whether an exclusive create is exclusive depends on the file system's own `rename`, which should
 * refuse a target that exists; and a replaced object is gone for a moment.
 */
private[storage] final class FileSystemRename(fileSystem: FileSystem) extends ReplaceInSteps {

  override def replacesAtomically: Boolean = false

  override def replace(from: Path, to: Path): Unit = replaceInSteps(from, to)

  override def create(from: Path, to: Path): Unit = {
    if (fileSystem.exists(to)) throw StorageErrors.alreadyExists(to, null)
    if (!fileSystem.rename(from, to))
      throw if (fileSystem.exists(to) && fileSystem.exists(from)) StorageErrors.alreadyExists(to, null)
      else new IOException(s"cannot rename $from to $to")
  }

  override protected def delete(path: Path): Unit = {
    val _ = fileSystem.delete(path, false)
  }
}
