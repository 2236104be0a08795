package sparkdstl.log.storage

import java.io.IOException
import java.nio.charset.StandardCharsets

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, FileSystem, Path, StreamCapabilities}
import org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE

/** Makes an object appear whole or not at all. An error on closing a stream is an error of the write. */
private[storage] trait ObjectPublisher {

  /** See [[StorageTraits.replacesAtomically]]. */
  def replacesAtomically: Boolean

  /** Publishes `content` at a name that no other writer uses: an object that is there was written before. */
  def put(path: Path, content: Payload): Unit

  /** Publishes `content`, replacing what is there. */
  def replace(path: Path, content: Payload): Unit

  /** Publishes `content` if nothing is there, else fails with Hadoop's `FileAlreadyExistsException`. */
  def create(path: Path, content: Payload): Unit

  /** See [[StorageOperation.TryCreation]]. */
  def createsExclusively(path: Path): Boolean

  /** Whether `creation` fails because an object is there. */
  protected def isRefused(creation: => Unit): Boolean =
    try {
      creation
      false
    } catch { case e: IOException if StorageErrors.meansAlreadyExists(e) => true }

  /** Writes the content, and closes the stream. After a failed write `abandon` ends the stream instead. */
  protected def write(stream: FSDataOutputStream, content: Payload): Unit = {
    try content.parts.foreach(stream.write(_))
    catch {
      case e: Throwable =>
        try abandon(stream)
        catch { case NonFatal(onEnd) => e.addSuppressed(onEnd) }
        throw e
    }
    stream.close()
  }

  protected def abandon(stream: FSDataOutputStream): Unit

  /** The content of a trial. Not empty: some clients treat empty objects differently. */
  protected def trial: Payload = Payload("trial\n".getBytes(StandardCharsets.US_ASCII))
}

/** Writes at the object's own path, on file systems that publish when a stream is closed, such as S3A. */
private[storage] final class DirectPublisher(fileSystem: FileSystem) extends ObjectPublisher {

  // Spares S3A the probe for a directory of that name. Other file systems ignore it.
  private val skipProbes = "fs.s3a.create.performance"

  override def replacesAtomically: Boolean = true

  override def put(path: Path, content: Payload): Unit = replace(path, content)

  override def replace(path: Path, content: Payload): Unit =
    write(fileSystem.createFile(path).create().overwrite(true).recursive().opt(skipProbes, true).build(), content)

  override def create(path: Path, content: Payload): Unit =
    try write(openExclusively(path), content)
    catch {
      case e: IOException if StorageErrors.meansAlreadyExists(e) => throw StorageErrors.alreadyExists(path, e)
    }

  // A client that looks before it writes does so when the stream is opened.
  override def createsExclusively(path: Path): Boolean = {
    val first = openExclusively(path)
    val second = Try(openExclusively(path))
    // A client that repeats the request after a lost reply is refused: the second creation decides all the same.
    try isRefused(write(first, trial)): Unit
    catch {
      case e: Throwable =>
        try second.foreach(abandon)
        catch { case NonFatal(onEnd) => e.addSuppressed(onEnd) }
        throw e
    }
    isRefused(write(second.get, trial))
  }

  private def openExclusively(path: Path): FSDataOutputStream =
    if (!fileSystem.hasPathCapability(path, FS_OPTION_CREATE_CONDITIONAL_OVERWRITE)) fileSystem.create(path, false)
    else
      fileSystem.createFile(path).create().overwrite(false).recursive()
        .must(FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true).build()

  /** Ends a stream without publishing. One that cannot be aborted is left open: closing it would publish a part. */
  override protected def abandon(stream: FSDataOutputStream): Unit =
    if (stream.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) stream.abort(): Unit
}

/**
 * Writes to a hidden file in the object's directory, then renames it.
 *
 * @param randomName distinguishes the hidden files of concurrent writers
 */
private[storage] final class RenamePublisher(fileSystem: FileSystem, rename: AtomicRename, randomName: () => String)
    extends ObjectPublisher {

  override def replacesAtomically: Boolean = rename.replacesAtomically

  // A name that no other writer uses need not be replaced, so that a late attempt does no harm.
  override def put(path: Path, content: Payload): Unit =
    try create(path, content)
    catch { case _: FileAlreadyExistsException => }

  override def replace(path: Path, content: Payload): Unit = throughTemporary(path, content)(rename.replace(_, path))

  override def create(path: Path, content: Payload): Unit = throughTemporary(path, content)(rename.create(_, path))

  // Nothing is decided before the rename, so two that follow each other show as much as two at once.
  override def createsExclusively(path: Path): Boolean = {
    isRefused(create(path, trial)): Unit
    isRefused(create(path, trial))
  }

  private def throughTemporary(path: Path, content: Payload)(publish: Path => Unit): Unit = {
    val temporary = TemporaryNames.beside(path, randomName())
    try {
      write(fileSystem.create(temporary, true), content)
      publish(temporary)
    } catch {
      case e: Throwable =>
        try fileSystem.delete(temporary, false): Unit
        catch { case NonFatal(onDelete) => e.addSuppressed(onDelete) }
        throw e
    }
  }

  override protected def abandon(stream: FSDataOutputStream): Unit = stream.close()
}

/** How unpublished files are named: hidden, with an ending that objects do not have. */
private[storage] object TemporaryNames {
  def beside(path: Path, random: String): Path = new Path(path.getParent, s".${path.getName}.$random.tmp")

  def isTemporary(path: Path): Boolean = path.getName.startsWith(".") && path.getName.endsWith(".tmp")
}
