package sparkdstl.log.storage

import java.io.IOException
import java.nio.charset.StandardCharsets

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, FileSystem, Path, StreamCapabilities}
import org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE

/** Makes an object appear whole or not at all. An error on closing a stream is an error of the write. */
private[storage] trait ObjectPublisher {

  /** Publishes `content` at a name that nobody else uses: that something is there means that it was done before. */
  def put(path: Path, content: Payload): Unit

  /** Publishes `content`, replacing what is there. */
  def replace(path: Path, content: Payload): Unit

  /** See [[ObjectStore.replacesAtomically]]. */
  def replacesAtomically: Boolean

  /** Publishes `content` if nothing is there, else fails with Hadoop's `FileAlreadyExistsException`. */
  def create(path: Path, content: Payload): Unit

  /** See [[ObjectStore.createsExclusively]]. */
  def createsExclusively(path: Path): Boolean

  /** Whether `creation` is told that something is there. */
  protected def isRefused(creation: => Unit): Boolean =
    try {
      creation
      false
    } catch {
      case e: IOException if StorageErrors.meansAlreadyExists(e) => true
    }
}

private object ObjectPublisher {

  /** What is written to try something out. Not empty: some clients treat empty objects apart. */
  val Trial: Payload = Payload("trial\n".getBytes(StandardCharsets.US_ASCII))
}

/** Writes at the object's own path, on file systems that publish when a stream is closed, such as S3A. */
private[storage] final class DirectPublisher(fileSystem: FileSystem) extends ObjectPublisher {

  // Spares S3A the probe for a directory of that name. Other file systems ignore it.
  private val skipProbes = "fs.s3a.create.performance"

  override def put(path: Path, content: Payload): Unit = replace(path, content)

  override def replacesAtomically: Boolean = true

  override def replace(path: Path, content: Payload): Unit =
    write(fileSystem.createFile(path).create().overwrite(true).recursive().opt(skipProbes, true).build(), content)

  override def create(path: Path, content: Payload): Unit =
    try write(openExclusively(path), content)
    catch {
      case e: IOException if StorageErrors.meansAlreadyExists(e) => throw StorageErrors.alreadyExists(path, e)
    }

  // What a client looks for before it writes, it looks for when the stream is opened.
  override def createsExclusively(path: Path): Boolean = {
    val first = openExclusively(path)
    val second = Try(openExclusively(path))
    // A client that has repeated it after a lost reply is told that it is there: the second one tells all the same.
    try isRefused(write(first, ObjectPublisher.Trial)): Unit
    catch {
      case e: Throwable =>
        second.foreach(abandon(_, e))
        throw e
    }
    isRefused(write(second.get, ObjectPublisher.Trial))
  }

  private def openExclusively(path: Path): FSDataOutputStream =
    if (fileSystem.hasPathCapability(path, FS_OPTION_CREATE_CONDITIONAL_OVERWRITE)) openConditionally(path)
    else fileSystem.create(path, false)

  private def openConditionally(path: Path): FSDataOutputStream = fileSystem
    .createFile(path)
    .create()
    .overwrite(false)
    .recursive()
    .must(FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true)
    .build()

  private def write(stream: FSDataOutputStream, content: Payload): Unit = {
    try content.parts.foreach(stream.write(_))
    catch {
      case e: Throwable =>
        abandon(stream, e)
        throw e
    }
    stream.close()
  }

  /** Ends a stream without publishing. One that cannot be aborted is left open: closing it would publish a part. */
  private def abandon(stream: FSDataOutputStream, error: Throwable): Unit =
    if (stream.hasCapability(StreamCapabilities.ABORTABLE_STREAM))
      try {
        val _ = stream.abort()
      } catch {
        case NonFatal(e) => error.addSuppressed(e)
      }
}

/**
 * Writes to a hidden file in the object's directory, then renames it.
 *
 * @param randomName
 *   distinguishes the hidden files of concurrent writers
 */
private[storage] final class RenamePublisher(fileSystem: FileSystem, rename: AtomicRename, randomName: () => String)
    extends ObjectPublisher {

  // What is renamed to a name that nobody else uses need not replace anything, so that a late attempt can do no harm.
  override def put(path: Path, content: Payload): Unit =
    try create(path, content)
    catch { case _: FileAlreadyExistsException => }

  override def replacesAtomically: Boolean = rename.replacesAtomically

  override def replace(path: Path, content: Payload): Unit =
    throughTemporary(path, content)(rename.replace(_, path))

  override def create(path: Path, content: Payload): Unit =
    throughTemporary(path, content)(rename.create(_, path))

  // Nothing is decided before the rename, so two that follow each other tell as much as two at once.
  override def createsExclusively(path: Path): Boolean = {
    isRefused(create(path, ObjectPublisher.Trial)): Unit
    isRefused(create(path, ObjectPublisher.Trial))
  }

  private def throughTemporary(path: Path, content: Payload)(publish: Path => Unit): Unit = {
    val temporary = TemporaryNames.beside(path, randomName())
    try {
      write(temporary, content)
      publish(temporary)
    } catch {
      case e: Throwable =>
        deleteAfter(e, temporary)
        throw e
    }
  }

  private def write(temporary: Path, content: Payload): Unit = {
    val stream = fileSystem.create(temporary, true)
    try content.parts.foreach(stream.write(_))
    catch {
      case e: Throwable =>
        try stream.close()
        catch { case NonFatal(onClose) => e.addSuppressed(onClose) }
        throw e
    }
    stream.close()
  }

  private def deleteAfter(error: Throwable, temporary: Path): Unit =
    try {
      val _ = fileSystem.delete(temporary, false)
    } catch {
      case NonFatal(e) => error.addSuppressed(e)
    }
}

/** How unpublished files are named: hidden, and told from objects by their ending. */
private[storage] object TemporaryNames {
  def beside(path: Path, random: String): Path = new Path(path.getParent, s".${path.getName}.$random.tmp")

  def isTemporary(path: Path): Boolean = path.getName.startsWith(".") && path.getName.endsWith(".tmp")
}
